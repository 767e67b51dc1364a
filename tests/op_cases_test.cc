// Walks the table of op cases: values against the goldens, text, dtypes, symbolic sizes, coverage.
// Must not know a case by name. Derivatives are op_cases_gradient_test.cc's.
#include "op_cases.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/dtype.h"
#include "ir/float_formats.h"
#include "ir/graph.h"
#include "ir/print.h"
#include "op_case_runner.h"

using namespace anneal;

namespace {

const std::string kGoldenFolder = std::string(ANNEAL_SOURCE_DIR) + "/tests/goldens/";

// With C's functions: the core's tests run where C++ has no files.
struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

std::string read_file(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rb"));
  REQUIRE_MESSAGE(file, "cannot read " << path);
  std::string text, part(size_t{1} << 16, '\0');
  while (const size_t count = std::fread(part.data(), 1, part.size(), file.get()))
    text.append(part, 0, count);
  return text;
}

// ---- goldens

std::vector<int64_t> parse_shape(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '[' || c == ']' || c == ','; }, ' ');
  std::istringstream stream(text);
  std::vector<int64_t> shape;
  for (int64_t size = 0; stream >> size;) shape.push_back(size);
  return shape;
}

// "name dtype [shape] values…"
std::map<std::string, Array, std::less<>> read_goldens() {
  std::map<std::string, Array, std::less<>> goldens;
  std::istringstream lines(read_file(kGoldenFolder + "op_cases.txt"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, dtype, shape, value;
    words >> name >> dtype >> shape;
    Array array;
    array.dtype = parse_dtype(dtype).value();
    array.shape = parse_shape(shape);
    while (words >> value) {
      if (is_int(array.dtype)) {
        array.integers.push_back(static_cast<int64_t>(
            value[0] == '-' ? static_cast<uint64_t>(std::strtoll(value.c_str(), nullptr, 10))
                            : std::strtoull(value.c_str(), nullptr, 10)));
      } else {
        array.reals.push_back(std::strtod(value.c_str(), nullptr));
      }
    }
    REQUIRE_MESSAGE(goldens.emplace(name, array).second, name << " has two goldens");
  }
  return goldens;
}

// ---- dtypes

// Integers that fit every dtype of the signedness.
CaseValues whole_values(const OpCase& op_case, bool is_signed) {
  CaseValues values = case_values(op_case);
  for (size_t i = 0; i < values.size(); ++i) {
    if (op_case.inputs[i].dtype != DType::F64) continue;
    Draws draws(fmt::format("{}/whole/{}", op_case.name, i));
    for (double& value : values[i]) value = std::floor(draws.uniform(is_signed ? -100 : 0, 100));
  }
  return values;
}

CaseValues rounded(const OpCase& op_case, CaseValues values, DType dtype) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (op_case.inputs[i].dtype != DType::F64) continue;
    for (double& value : values[i]) value = round_to(dtype, value);
  }
  return values;
}

bool has_f64_input(const OpCase& op_case) {
  return std::any_of(op_case.inputs.begin(), op_case.inputs.end(),
                     [](const InputSpec& spec) { return spec.dtype == DType::F64; });
}

Array run_case(const OpCase& op_case, DType dtype, const CaseValues& values) {
  CaseProgram program = build_case(op_case, dtype);
  return run(program.output, case_bindings(program, case_shapes(op_case), values));
}

int64_t wrapped(int64_t value, DType dtype) {
  const int unused = 64 - 8 * static_cast<int>(byte_size(dtype));
  const uint64_t bits = static_cast<uint64_t>(value) << unused;
  return is_unsigned(dtype) ? static_cast<int64_t>(bits >> unused)
                            : static_cast<int64_t>(bits) >> unused;
}

// The result of i64 in the dtype that a case gives for integers of `dtype`.
Array wrapped(Array array, const OpCase& op_case, DType dtype) {
  if (array.dtype != DType::I64) return array;
  if (op_case.options.widens_integers && byte_size(dtype) < 4) {
    dtype = is_unsigned(dtype) ? DType::U32 : DType::I32;
  }
  array.dtype = dtype;
  for (int64_t& value : array.integers) value = wrapped(value, dtype);
  return array;
}

// ---- coverage

void add_ops(const Tensor& output, OpSet& reached) {
  NodeRef root = output.node();
  for (NodeRef node : topological_order(std::span(&root, 1))) reached.add(node->op);
}

// The functions a public header declares.
std::set<std::string> declared_functions(const std::string& header) {
  static const std::regex kDeclaration(
      R"(^ *(?:Tensor|Sorted|std::vector<Tensor>|void) (operator[^\s(]+|\w+)\()");
  std::set<std::string> names;
  std::istringstream lines(read_file(std::string(ANNEAL_SOURCE_DIR) + "/include/anneal/" + header));
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, kDeclaration)) names.insert(match[1]);
  }
  return names;
}

// Whether C++ text calls a function, or has an operator's sign between blanks or before an operand.
bool calls(const std::string& text, const std::string& function) {
  if (!function.starts_with("operator")) {
    for (size_t at = text.find(function + "("); at != std::string::npos;
         at = text.find(function + "(", at + 1)) {
      const char before = text[at - 1];
      if (std::isalnum(static_cast<unsigned char>(before)) == 0 && before != '_') return true;
    }
    return false;
  }
  const std::string sign = function.substr(std::string_view("operator").size());
  if (sign == "[]") return text.find("x[0][") != std::string::npos;
  return text.find(" " + sign + " ") != std::string::npos ||
         text.find(" " + sign + "x[") != std::string::npos;
}

}  // namespace

TEST_CASE("op cases: inputs.txt is what the table says") {
  const std::string path = kGoldenFolder + "inputs.txt", text = describe_inputs();
  if (std::getenv("ANNEAL_WRITE_INPUTS") != nullptr) {
    const File file(std::fopen(path.c_str(), "wb"));
    REQUIRE(std::fwrite(text.data(), 1, text.size(), file.get()) == text.size());
  }
  CHECK_MESSAGE(read_file(path) == text,
                "the table has changed: see docs/testing.md for the two "
                "commands that bring tests/goldens up to date");
}

TEST_CASE("op cases: every case has its own name and a golden") {
  const auto goldens = read_goldens();
  std::set<std::string_view> names;
  for (const OpCase& op_case : op_cases()) {
    CHECK_MESSAGE(names.insert(op_case.name).second, op_case.name << " stands twice in the table");
    CHECK_MESSAGE(goldens.contains(op_case.name), op_case.name << " has no golden");
  }
  for (const auto& [name, golden] : goldens) {
    CHECK_MESSAGE(names.contains(name), "the golden " << name << " has no case");
  }
}

TEST_CASE("op cases: the interpreter gives the golden") {
  const auto goldens = read_goldens();
  for_each_case([&](const OpCase& op_case) {
    const auto golden = goldens.find(op_case.name);
    if (golden == goldens.end()) return;
    CaseProgram program = build_case(op_case);
    const Array got =
        run(program.output, case_bindings(program, case_shapes(op_case), case_values(op_case)));
    check_array(op_case.name, got, golden->second, op_case.options.tolerance,
                op_case.options.special);
  });
}

TEST_CASE("op cases: text reads back as the same node") {
  for_each_case([](const OpCase& op_case) {
    std::vector<CaseProgram> programs{build_case(op_case)};
    if (op_case.is_symbolic()) programs.push_back(build_case(op_case, {}, symbolic_size()));
    for (const CaseProgram& program : programs) {
      const NodeRef node = program.output.node();
      const std::string text = print(node);
      const auto read = parse(text);
      if (const auto* error = std::get_if<ParseError>(&read)) {
        FAIL_CHECK(op_case.name << ": line " << error->line << ": " << error->message << "\n"
                                << text);
        continue;
      }
      const NodeRef back = std::get<std::vector<NodeRef>>(read).at(0);
      CHECK_MESSAGE(back == node, op_case.name << ": another node came back from\n" << text);
      CHECK_MESSAGE(print(back) == text, op_case.name << ": another text for\n" << text);
    }
  });
}

TEST_CASE("op cases: narrower floats stay close to f64") {
  for (DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    for_each_case([&](const OpCase& op_case) {
      if (!op_case.options.any_float || !has_f64_input(op_case)) return;
      const CaseValues values = rounded(op_case, case_values(op_case), dtype);
      Array expected = run_case(op_case, DType::F64, values);
      if (expected.dtype == DType::F64)
        expected.dtype = op_case.options.widens_floats ? DType::F32 : dtype;
      check_array(fmt::format("{} in {}", op_case.name, name(dtype)),
                  run_case(op_case, dtype, values), expected, tolerance_of(dtype),
                  op_case.options.special);
    });
  }
}

TEST_CASE("op cases: integers are exact and wrap") {
  for_each_case([](const OpCase& op_case) {
    if (!op_case.options.any_integer || !has_f64_input(op_case)) return;
    for (DType dtype : kAllDTypes) {
      if (!is_int(dtype)) continue;
      const CaseValues values = whole_values(op_case, is_signed(dtype));
      const Array expected = run_case(op_case, DType::I64, values);
      check_array(fmt::format("{} in {}", op_case.name, name(dtype)),
                  run_case(op_case, dtype, values), wrapped(expected, op_case, dtype), kExact);
      // What i64 gives is what f64 gives, as far as f64 holds integers.
      Array real = run_case(op_case, DType::F64, values);
      if (real.dtype != DType::F64 || real.largest() >= 0x1p50) continue;
      real.dtype = DType::I64;
      for (double value : real.reals) real.integers.push_back(static_cast<int64_t>(value));
      real.reals.clear();
      check_array(fmt::format("{} in i64 and f64", op_case.name), expected, real, kExact);
    }
  });
}

TEST_CASE("op cases: a symbolic size gives what the number gives") {
  const Variable n = symbolic_size();
  for_each_case([&](const OpCase& op_case) {
    if (!op_case.is_symbolic()) return;
    const CaseProgram symbolic = build_case(op_case, {}, n);
    for (int64_t size : symbolic_bindings(op_case)) {
      const CaseShapes shapes = case_shapes(op_case, size);
      const CaseValues values = case_values(op_case, size);
      Bindings bindings = case_bindings(symbolic, shapes, values);
      bindings.sizes.emplace_back(n, size);
      const CaseProgram fixed = build_case(op_case, {}, Dim(size));
      check_array(fmt::format("{} with n = {}", op_case.name, size), run(symbolic.output, bindings),
                  run(fixed.output, case_bindings(fixed, shapes, values)), kClose,
                  op_case.options.special);
    }
  });
}

TEST_CASE("op cases: every op is reached") {
  OpSet reached;
  for_each_case([&](const OpCase& op_case) {
    add_ops(build_case(op_case).output, reached);
    if (op_case.is_symbolic()) add_ops(build_case(op_case, {}, symbolic_size()).output, reached);
  });
  for (int i = 0; i < kTensorOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    CHECK_MESSAGE(reached.contains(op), "no case masked_ranges " << name(op));
  }
}

TEST_CASE("op cases: every public function is called") {
  std::string table;
  for (const char* family : {"elementwise", "integer", "reduce", "movement", "indexing", "products",
                             "functional", "structure", "search", "losses"}) {
    table += read_file(fmt::format("{}/tests/op_cases_{}.cc", ANNEAL_SOURCE_DIR, family));
  }
  // What the tests of this file and of gradients call for every case, and what is no operation.
  const std::set<std::string> elsewhere{"grad",       "jvp",
                                        "input",      "evaluate",
                                        "from_bytes", "realize",
                                        "read",       "fail_not_one_element",
                                        "write",      "check_dtype_of_values",
                                        "from_lists", "read_list",
                                        "open",       "close",
                                        "add"};
  for (const char* header : {"tensor.h", "lists.h", "functional.h", "random.h", "grad.h"}) {
    for (const std::string& function : declared_functions(header)) {
      if (elsewhere.contains(function)) continue;
      CHECK_MESSAGE(calls(table, function), "no case calls " << function << " of " << header);
    }
  }
}
