// Proofs by bounds, linear differences and limits. False means "not shown", never "shown false".
#pragma once

#include "ir/node.h"

namespace anneal {

bool prove_nonnegative(NodeRef a);
bool prove_less(NodeRef a, NodeRef b);
bool prove_less_equal(NodeRef a, NodeRef b);
bool prove_equal(NodeRef a, NodeRef b);
bool prove_true(NodeRef condition);

}  // namespace anneal
