// A call of a layer: errors and nodes name the line of the user and the layer's path.
#pragma once

#include <anneal/nn.h>

#include "base/call_site.h"

namespace anneal::nn {

struct ModuleCall {
  ModuleCall(const char* operation, const Module& module, Location where)
      : call(operation, where), layer(module.path(), LayerScope::Absolute{}) {}

  CallScope call;
  LayerScope layer;
};

}  // namespace anneal::nn
