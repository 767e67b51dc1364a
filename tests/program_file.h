// Programs kept in files. The first line says how to run one: "// cells 3 sizes 7 9 buffers 64 12",
// buffers in elements, which are random and the same every time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ir/interpreter.h"
#include "kernel/program/program.h"

namespace anneal {

struct ProgramFile {
  std::string text;
  Program program;
  int64_t cells = 0;
  std::vector<int64_t> sizes;
  std::vector<Value> values;  // of buffers
};

// In a folder of the source tree, sorted; ends in .program.
std::vector<std::filesystem::path> program_files(const char* folder);
// Fails the test case where it is no program, or its first line does not fit it.
ProgramFile read_program_file(const std::filesystem::path& path);

}  // namespace anneal
