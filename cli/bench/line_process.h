// Another program that answers lines with lines, run beside this one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace anneal::cli {

class LineProcess {
 public:
  using Settings = std::vector<std::pair<std::string, std::string>>;

  // Starts it, with environment variables set beside those of this process. A program that cannot
  // be started answers nothing.
  explicit LineProcess(const std::vector<std::string>& command, const Settings& environment = {});
  ~LineProcess();
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;

  // The line it answers with; none when it ended or said nothing for so many seconds, after which
  // it is not asked again.
  std::optional<std::string> ask(std::string_view line, double seconds);

 private:
  bool send(std::string_view line) const;
  std::optional<std::string> receive(double seconds);
  void stop();

  int process_ = -1, to_ = -1, from_ = -1;
  std::string received_;  // after the last whole line
};

// The folder of the program that runs; empty where the system does not say.
std::filesystem::path program_folder();

}  // namespace anneal::cli
