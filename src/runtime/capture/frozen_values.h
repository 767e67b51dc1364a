// Finds what a function that was captured twice took from the host: a number, a new parameter, a
// branch. It would stay in the plan as it was at the first capture.
#pragma once

#include <span>

#include "ir/node.h"

namespace anneal {

// An error that names the line, unless both programs do the same up to the numbers of random draws.
// Tensors made of equal data of the host are the same where `all_from_host`: no new one holds what
// the function computed meanwhile.
void check_same_program(std::span<const NodeRef> first, std::span<const NodeRef> second,
                        bool all_from_host);

// Whether it draws random numbers by numbers of the host.
bool is_draw(NodeRef node);

}  // namespace anneal
