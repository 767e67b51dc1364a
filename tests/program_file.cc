#include "program_file.h"

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>
#include <variant>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lower_check.h"

namespace anneal {

std::vector<std::filesystem::path> program_files(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(fmt::format("{}/{}", ANNEAL_SOURCE_DIR, folder)))
    if (entry.path().extension() == ".program") paths.push_back(entry.path());
  std::ranges::sort(paths);
  REQUIRE(paths.size() >= 2);
  return paths;
}

ProgramFile read_program_file(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  ProgramFile file{.text = text.str(), .program = {}, .sizes = {}, .values = {}};
  const auto read = parse_program(file.text);
  if (const auto* error = std::get_if<TextError>(&read))
    FAIL(fmt::format("{}:{}: {}", error->at.line, error->at.column, error->message));
  file.program = std::get<Program>(read);
  REQUIRE(verify(file.program) == "");

  std::istringstream line(file.text.substr(0, file.text.find('\n')));
  std::mt19937_64 random(7);
  std::string kind;
  for (std::string word; line >> word;) {
    if (word == "//" || word == "cells" || word == "sizes" || word == "buffers") {
      kind = word;
    } else if (kind == "cells") {
      file.cells = std::stoll(word);
    } else if (kind == "sizes") {
      file.sizes.push_back(std::stoll(word));
    } else {
      REQUIRE(file.values.size() < file.program.buffers.size());
      const DType dtype = file.program.buffers[file.values.size()].dtype;
      file.values.push_back(random_value(dtype, std::stoll(word), random));
    }
  }
  REQUIRE(file.values.size() == file.program.buffers.size());
  REQUIRE(file.cells > 0);
  return file;
}

}  // namespace anneal
