// The text form of the IR, out and in. print and parse are inverse: the same node comes back.
//
//   variable n 1..1024
//   %0 = buffer "x" #0 : f32[n, 784]
//   %1 = const 0.5 : f32[n, 784]
//   %2 = mul %0, %1 : f32[n, 784]
//   %3 = mul n, 784 : index
//   %4 = reshape %2, [%3] : f32[%3]
//   return %4
//
// An operand is %number, an integer (an index constant) or the name of a variable; sizes stand in
// brackets, axes in braces. Types are written on every line and checked by the parser.
//
//   text        one statement a line; blank lines and // comments are ignored; return comes last
//   statement   variable NAME MIN..MAX | %NUMBER = OP [BODY] : TYPE | return [OPERAND, ...]
//   BODY        what the op's row in ops.def asks for, in this order:
//                 sources   OPERAND, ...
//                 sizes     , [OPERAND, ...]      of reshape and expand, and the pairs of pad and
//                                                 shrink; a leaf has the sizes of its type
//                 arg       VALUE | axis K | {K, ...} | "NAME" #SLOT | "NAME" MIN..MAX
//   TYPE        DTYPE[OPERAND, ...] | index
//
// A variable whose name is no identifier, or that shares its name with another one of other bounds,
// has a numbered line instead: %0 = variable "a b" 1..4 : index. Where the symbol of a buffer or
// custom_grad has a second number other than 0, it reads #SLOT/SECOND. Names are ASCII: quote().
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/graph.h"

namespace anneal {

std::string print(std::span<const NodeRef> roots);
inline std::string print(NodeRef root) { return print(std::span(&root, 1)); }

// The line of one node in print(roots), which must reach it, without the line end. For messages.
std::string print_line(std::span<const NodeRef> roots, NodeRef node);

// The lines of print(roots), each with the node it defines: the last, `return`, defines none.
std::vector<std::pair<NodeRef, std::string>> print_lines(std::span<const NodeRef> roots);

struct ParseError {
  size_t line = 0, column = 0;  // from 1
  std::string message;
};

struct ParseLimits {
  size_t text_bytes = 100'000'000;
  size_t nodes = 1'000'000;  // new in the graph, those for sizes of results included
  size_t rank = 32;
  size_t string_bytes = 1'000'000;
  size_t index_work = 16'000'000;  // nodes of index expressions visited to infer sizes
};

// Reads into the current graph. Never throws on bad text, never recurses.
std::variant<std::vector<NodeRef>, ParseError> parse(std::string_view text,
                                                     const ParseLimits& limits = {});

// For messages to people: "n * 3 + 1", "[n, 784]", "f32[n, 784]". Long expressions end in "…".
std::string to_text(NodeRef index);
std::string to_text(const Shape& shape);
std::string type_text(NodeRef node);

}  // namespace anneal
