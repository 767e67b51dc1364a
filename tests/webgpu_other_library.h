// What a test can learn of the library that stands for webgpu.h since May 2025
// (webgpu_other_library.cc), and how it says what adapters shall offer.
#pragma once

namespace anneal {

// Units for matrices, for whoever asks with Dawn's switches: "element result rows columns depth
// subgroup_min subgroup_max", as numbers of abi.h. While it is set, f16 is offered to these alone,
// as on NVIDIA's GPUs. Where it is not set there is nothing of the kind.
inline constexpr const char* kOfferedMatrices = "ANNEAL_TEST_MATRICES";
inline constexpr const char* kUsualMatrices = "2 1 16 16 16 32 32";
// Set: the adapter offers them, and the device cannot be opened with them.
inline constexpr const char* kRefusedMatrices = "ANNEAL_TEST_REFUSE_MATRICES";

// Counted since the library was loaded.
struct WhatWasAsked {
  int switched_adapters = 0;  // with Dawn's switches for matrices
  int switched_devices = 0;
  int matrix_devices = 0;  // with features and switches for matrices
  int configs_kept = 0;    // lists of them that were not given back
};
using WhatWasAskedFunction = const WhatWasAsked*();
inline constexpr const char* kWhatWasAsked = "anneal_test_what_was_asked";

}  // namespace anneal
