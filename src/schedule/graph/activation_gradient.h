// What is kept of a value that an activation is made of: where its gradient needs it once more, the
// activation's slope.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/node.h"

namespace anneal {

// A value that a product ends in, and that two things alone are made of by themselves, one of them
// an operand of products: those two are stored, and the value is not. Otherwise the value and the
// operand would be, and the other made of the value later, with exponentials again.
std::vector<NodeRef> save_activation_gradients(std::span<const NodeRef> roots);
std::vector<std::string_view> activation_gradient_rules();  // their names

}  // namespace anneal
