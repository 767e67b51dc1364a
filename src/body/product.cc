#include "body/product.h"

#include "ir/node_map.h"

namespace anneal {

ProductOperands product_operands(std::span<const NodeRef> terms, const AxisSet& summed, size_t rows,
                                 size_t columns, FreeAxes& free) {
  ProductOperands operands;
  NodeMap<char> seen;
  std::vector<NodeRef> stack(terms.begin(), terms.end());
  while (!stack.empty()) {
    NodeRef node = stack.back();
    stack.pop_back();
    const AxisSet changes = free.of(node);
    if ((changes & summed).empty() || !seen.insert(node, 1).second) continue;
    switch (side_of(changes, rows, columns)) {
      case Side::Rows: operands.of_rows.push_back(node); continue;
      case Side::Columns: operands.of_columns.push_back(node); continue;
      case Side::Neither: operands.others.push_back(node); continue;
      case Side::Both: break;
    }
    if (!is_elementwise(node->op) || node->dtype == DType::Index) {
      operands.mixed = true;
      continue;
    }
    for (NodeRef source : node->sources()) stack.push_back(source);
  }
  return operands;
}

}  // namespace anneal
