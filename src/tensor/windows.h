// Sliding windows by movement alone, shared by convolutions, pools and unfold.
#pragma once

#include <vector>

#include <anneal/tensor.h>

namespace anneal {

// How windows lie on one axis. Their elements are `dilation` apart, their beginnings `stride`.
struct Window {
  int64_t kernel = 1, stride = 1, dilation = 1, padding = 0;

  int64_t extent() const { return dilation * (kernel - 1) + 1; }  // from first to last element
};

// One Window an axis from lists that have one number for all axes or one for each. An empty stride
// is the kernel. Errors name the list.
std::vector<Window> checked_windows(const std::vector<int64_t>& kernel,
                                    const std::vector<int64_t>& stride,
                                    const std::vector<int64_t>& dilation,
                                    const std::vector<int64_t>& padding);

// The list with one number an axis. `least` is the smallest number that makes sense.
std::vector<int64_t> one_for_each(const char* what, const std::vector<int64_t>& numbers,
                                  size_t axes, int64_t least);

// x with `padding` zeros on both sides of its last axes.
Tensor pad_windows(const Tensor& x, const std::vector<Window>& windows);
// The same with the least value of the dtype, which no maximum sees.
Tensor pad_windows_lowest(const Tensor& x, const std::vector<Window>& windows);

// The windows over the last axes of x, which was padded before: [.., space..] becomes
// [.., windows.., kernel..]. An error when a window is larger than its axis can be.
Tensor sliding_windows(const Tensor& x, const std::vector<Window>& windows);

}  // namespace anneal
