// Everything a program needs.
#pragma once

#include <anneal/compile.h>
#include <anneal/counters.h>
#include <anneal/device.h>
#include <anneal/dim.h>
#include <anneal/dtype.h>
#include <anneal/error.h>
#include <anneal/functional.h>
#include <anneal/grad.h>
#include <anneal/io.h>
#include <anneal/nn.h>
#include <anneal/optim.h>
#include <anneal/print.h>
#include <anneal/progress.h>
#include <anneal/random.h>
#include <anneal/state.h>
#include <anneal/step.h>
#include <anneal/tensor.h>
