// The few compound expressions that derivative rules share. Everything else in the tables is
// ordinary tensor arithmetic.
#pragma once

#include <anneal/tensor.h>

#include "ir/node.h"

namespace anneal {

// An empty part: nothing flows to this source.
inline Tensor none() { return {}; }

Tensor float_part(const Tensor& part,
                  const Tensor& like);                    // cast to like, or nothing to an integer
Tensor repeat_like(const Tensor& x, const Tensor& like);  // over axes that are 1 in x
Tensor sum_like(const Tensor& x, const Tensor& like);     // over axes that are 1 in like
Tensor reshape_like(const Tensor& x, const Tensor& like);
Tensor unpermute(const Tensor& x, NodeRef permute);
// Movement as a node says, on another tensor.
Tensor same_movement(const Tensor& x, NodeRef node);
Tensor same_reduction(const Tensor& x, NodeRef reduce);  // sums over the axes of `reduce`
Tensor unpad(const Tensor& x, NodeRef pad);
Tensor unshrink(const Tensor& x, NodeRef shrink);
Tensor unflip(const Tensor& x, NodeRef flip);

// 1 where x attains the reduced extreme y, shared equally among ties.
Tensor extreme_share(const Tensor& x, const Tensor& y, NodeRef reduce);
// For each element the product of all others that are reduced with it: right where factors are 0.
Tensor product_of_others(const Tensor& x, NodeRef reduce);

// Indexed access along the node's axis, at the places `index`.
Tensor gather_at(const Tensor& x, const Tensor& index, NodeRef node);
Tensor scatter_add_at(const Tensor& x, const Tensor& index, const Tensor& values, NodeRef node);
Tensor scatter_at(const Tensor& x, const Tensor& index, const Tensor& values, NodeRef node);
Tensor is_written(const Tensor& x, const Tensor& index, NodeRef node);  // some value landed here
Tensor is_last_writer(const Tensor& x, const Tensor& index,
                      NodeRef node);  // this value is what stayed

// 1 where `larger` holds, one half where a and b tie.
Tensor winner_share(const Tensor& larger, const Tensor& a, const Tensor& b);

}  // namespace anneal
