// Files: byte for byte what the Python packages write, and every kind of damage is one message.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <anneal/anneal.h>

#include "error_text.h"
#include "ir/dtype.h"

using namespace anneal;

namespace {

std::string golden(const std::string& name) {
  return fmt::format("{}/tests/goldens/io/{}", ANNEAL_SOURCE_DIR, name);
}

// A folder of its own, gone afterwards.
struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / fmt::format("anneal_io_{}", getpid())) {
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path / name).string(); }
  std::filesystem::path path;
};

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// A file with this header and this many bytes after it.
std::string safetensors(const std::string& header, size_t bytes) {
  std::string length(8, '\0');
  for (size_t i = 0; i < 4; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  return length + header + std::string(bytes, '\0');
}

}  // namespace

TEST_CASE("io: a safetensors file of every dtype is read, and written with the same bytes") {
  io::Safetensors file(golden("all.safetensors"));
  CHECK(file.names().size() == 18);
  CHECK(file.metadata() == io::Metadata{{"format", "pt"}});
  for (DType dtype : kAllDTypes) {
    if (dtype == DType::Index) continue;
    bool found = false;
    for (const auto& [name, tensor] : file.state())
      found |= name.starts_with("all.") && tensor.dtype() == dtype &&
               to_text(tensor.shape()) == "[2, 3]";
    CHECK_MESSAGE(found, name(dtype));
  }
  CHECK(file.tensor("all.BF16").to_vector() == std::vector<float>{1, 2, 3, -1, -2, 0});
  CHECK(file.tensor("all.F8_E5M2").to_vector() == std::vector<float>{0.5, 1, 2, -0.5, -1, 0});
  CHECK(file.tensor("all.I16").to_vector<int>() == std::vector<int>{1, 4, 7, 10, 13, 16});
  CHECK(file.tensor("scalar").item() == 2.5);
  CHECK(file.tensor("odd \"name\"\n\\ é").item() == 7);
  CHECK(file.contains("empty"));

  Folder folder;
  State state = file.state();
  std::ranges::reverse(state);
  io::save_safetensors(folder / "copy", state, file.metadata());
  CHECK(contents(folder / "copy") == contents(golden("all.safetensors")));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
  io::save_safetensors(folder / "none", {});
  CHECK(contents(folder / "none") == safetensors("{}      ", 0));
}

TEST_CASE("io: a model and its optimizer go through a file") {
  seed(1);
  nn::Gpt gpt({.layers = 1, .width = 8, .heads = 2, .vocabulary = 5, .block = 4, .dropout = 0.1});
  optim::AdamW adamw(gpt);
  Step step;
  adamw.update(sum(square(gpt(tensor({1, 2, 3}, {1, 3})))));
  step.evaluate({});
  Folder folder;
  State all = gpt.state();
  all.insert(all.end(), adamw.state().begin(), adamw.state().end());
  io::save_safetensors(folder / "run.safetensors", all);
  const State loaded = io::load_safetensors(folder / "run.safetensors");
  step.evaluate({});
  const std::vector<float> next = gpt.embedding.weight.to_vector();
  load_state(all, loaded);
  CHECK(gpt.embedding.weight.to_vector() != next);
  step.evaluate({});
  CHECK(gpt.embedding.weight.to_vector() == next);

  nn::Linear other(nullptr, "other", 3, 4);
  CHECK(contains(error_of([&] { other.load(loaded); }), "another model's state"));
}

TEST_CASE("io: damaged safetensors files are one message each") {
  Folder folder;
  const std::string path = folder / "bad.safetensors";
  const std::string good = contents(golden("all.safetensors"));
  auto message = [&](const std::string& bytes) {
    write(path, bytes);
    return error_of([&] { io::load_safetensors(path); });
  };
  auto entry = [](const std::string& text) { return "{\"a\":{" + text + "}}"; };
  const std::string dtype = "\"dtype\":\"F32\"", shape = "\"shape\":[2]",
                    offsets = "\"data_offsets\":[0,8]";
  CHECK(message(safetensors(entry(dtype + "," + shape + "," + offsets), 8)) == "no error");
  struct Row {
    std::string bytes, part;
  };
  const std::vector<Row> rows{
      {"", "it has 0 bytes"},
      {good.substr(0, 100), "it is cut off: its header"},
      {good.substr(0, good.size() - 1), "it is cut off: its tensors"},
      {good + "x", "1 bytes belong to no tensor"},
      {"GGUF file with other text", "it is no safetensors file"},
      {safetensors("[]", 0), "column 1: expected '{'"},
      {safetensors("{", 0), "expected '\"'"},
      {safetensors("{} x", 0), "more text after the end"},
      {safetensors(entry(dtype + "," + shape), 8), "needs dtype, shape and data_offsets"},
      {safetensors(entry("\"dtype\":\"F99\"," + shape + "," + offsets), 8),
       "the dtype \"F99\" is not known"},
      {safetensors(entry(dtype + ",\"shape\":[-2]," + offsets), 8), "expected a whole number"},
      {safetensors(entry(dtype + ",\"shape\":[9223372036854775808]," + offsets), 8),
       "its header is broken"},
      {safetensors(entry(dtype + ",\"shape\":[4294967296,4294967296]," + offsets), 8),
       "which do not fill its shape"},
      {safetensors(entry(dtype + ",\"shape\":[3]," + offsets), 8), "which do not fill its shape"},
      {safetensors(entry(dtype + "," + shape + ",\"data_offsets\":[8,0]"), 8), "at bytes 8 to 0"},
      {safetensors(entry(dtype + "," + shape + ",\"data_offsets\":[4,12]"), 12),
       "at bytes 4 to 12"},
      {safetensors(entry(dtype + "," + shape + "," + offsets + "," + shape), 8),
       "\"shape\" in the description"},
      {safetensors("{\"a\":1}", 0), "expected '{'"},
      {safetensors("{\"\\ud800\":1}", 0), "half of a surrogate pair"},
      {safetensors("{\"\xff\":1}", 0), "not UTF-8"},
      {safetensors("{\"__metadata__\":{\"a\":1}}", 0), "expected '\"'"},
  };
  for (const Row& row : rows) {
    const std::string text = message(row.bytes);
    CHECK_MESSAGE(contains(text, row.part), row.part << " not in " << text);
    CHECK(contains(text, "bad.safetensors"));
  }
  CHECK(contains(error_of([&] { io::load_safetensors(folder / "missing"); }),
                 "there is no such file"));
  CHECK(
      contains(error_of([&] { io::load_safetensors(folder.path.string()); }), "it is a directory"));
  CHECK(contains(error_of([&] { io::save_safetensors(folder.path.string(), {}); }),
                 "it is a directory"));
  CHECK(contains(error_of([&] { io::save_safetensors(folder / "no/such", {}); }), "cannot write"));
  Tensor one = tensor({1.0f});
  CHECK(contains(error_of([&] { io::save_safetensors(path, {{"a", one}, {"a", one}}); }), "twice"));
  CHECK(contains(error_of([&] { io::Safetensors(golden("all.safetensors")).tensor("b"); }),
                 "there is no \"b\" among the 18 tensors"));
}

TEST_CASE("io: npy files are read, and written with NumPy's bytes") {
  Folder folder;
  for (const char* name :
       {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
        "float32", "float64", "scalar", "vector", "empty"}) {
    const std::string path = golden(std::string(name) + ".npy");
    Tensor array = io::load_npy(path);
    if (array.rank() == 2 && std::string_view(name) != "empty") {
      CHECK(to_text(array.shape()) == "[3, 4]");
      const std::vector<double> values = array.to_vector<double>();
      for (size_t i = 0; i < 12; ++i)
        CHECK(values[i] ==
              (array.dtype() == DType::Bool ? static_cast<double>(i % 2) : static_cast<double>(i)));
    }
    io::save_npy(folder / "copy.npy", array);
    CHECK_MESSAGE(contents(folder / "copy.npy") == contents(path), name);
  }
  for (const char* name : {"columns.npy", "swapped.npy"}) {
    std::vector<float> expected;
    for (int i = 0; i < 12; ++i) expected.push_back(static_cast<float>(i));
    Tensor array = io::load_npy(golden(name));
    CHECK(to_text(array.shape()) == "[3, 4]");
    CHECK(array.to_vector() == expected);
  }
  CHECK(contains(error_of([&] { io::save_npy(folder / "b", zeros({2}, DType::BF16)); }),
                 "NumPy has no bf16"));
}

TEST_CASE("io: damaged npy files are one message each") {
  Folder folder;
  const std::string path = folder / "bad.npy", good = contents(golden("float32.npy"));
  auto message = [&](const std::string& bytes) {
    write(path, bytes);
    return error_of([&] { io::load_npy(path); });
  };
  auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  CHECK(contains(message("PK\x03\x04 an npz archive"), "it is no npy file"));
  CHECK(contains(message(good.substr(0, 40)), "it is cut off"));
  CHECK(contains(message(good.substr(0, good.size() - 1)),
                 "47 bytes follow the header, its shape has 48"));
  CHECK(contains(message(changed("<f4", "<c8")), "no dtype of tensors is \"<c8\""));
  CHECK(contains(message(changed("(3, 4)", "(3,-4)")), "a size of -4"));
  CHECK(contains(message(changed("'<f4'", "[('")), "records of several fields"));
  CHECK(contains(message(changed("False", "Maybe")), "column"));
  CHECK(contains(message(changed("'shape'", "'shade'")), "\"shade\" in the header"));
}

TEST_CASE("io: IDX files hold images and labels") {
  Folder folder;
  const std::string path = folder / "idx";
  using namespace std::string_literals;
  write(path, "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03\1\2\3\4\5\xff"s);
  Tensor images = io::load_idx(path);
  CHECK(images.dtype() == DType::U8);
  CHECK(to_text(images.shape()) == "[2, 1, 3]");
  CHECK(images.to_vector<int>() == std::vector<int>{1, 2, 3, 4, 5, 255});
  write(path, "\0\0\x0b\x01\0\0\0\x02\xff\xfe\x01\x02"s);
  CHECK(io::load_idx(path).to_vector<int>() == std::vector<int>{-2, 258});
  auto message = [&](const std::string& bytes) {
    write(path, bytes);
    return error_of([&] { io::load_idx(path); });
  };
  CHECK(contains(message("\x1f\x8b..."), "gunzip"));
  CHECK(contains(message("\0\0\x08\x01\0\0\0\x02\x01"s), "1 bytes follow the header"));
  CHECK(contains(message("\0\0\x08\x03\0\0\0\x02\x01"s), "cut off in its header"));
  CHECK(contains(message("\0\0\x08\xff"s), "255 axes, 32 are allowed"));
  CHECK(contains(message("\0\0\x0a\0"s), "no dtype has the code 10"));
  CHECK(contains(message("words"), "no IDX file"));
}

TEST_CASE("io: text") {
  Folder folder;
  io::save_text(folder / "text", "first\nsecond\n");
  CHECK(io::load_text(folder / "text") == "first\nsecond\n");
  CHECK(contains(error_of([&] { io::load_text(folder / "text", {.text_bytes = 4}); }),
                 "13 bytes, 4 are allowed"));
  io::save_text(folder / "text", "");
  CHECK(io::load_text(folder / "text").empty());
}
