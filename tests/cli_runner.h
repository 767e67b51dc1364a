// Runs the built program as a user does, for tests of its commands.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace anneal {

using Json = nlohmann::json;

std::string program_path();

struct Run {
  int code = -1;
  std::string output;  // standard output, or both where the command says 2>&1
};

Run shell(const std::string& command);
Run anneal_run(const std::string& arguments);
Run with_errors(const std::string& arguments);  // standard error too
Json json_of(const std::string& arguments);     // must work; adds --json

bool contains(const std::string& text, std::string_view part);

}  // namespace anneal
