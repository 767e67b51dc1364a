// The parameters an optimizer or an average is given.
#pragma once

#include <vector>

#include <anneal/nn.h>

namespace anneal::optim {

// An error for one that is listed twice, which would be changed twice, and for two of one name,
// whose state could not be told apart. Inside a call.
void check_listed_once(const std::vector<nn::Parameter>& parameters);

}  // namespace anneal::optim
