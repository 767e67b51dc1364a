// anneal, the program: reads the command line and hands over to one function a command. Exit codes:
// see failure.h.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <optional>
#include <span>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <anneal/device.h>
#include <anneal/error.h>

#include "anneal_version.h"
#include "base/debug.h"
#include "base/notice.h"
#include "base/os/environment.h"
#include "cli/bench/bench.h"
#include "cli/cache.h"
#include "cli/compile_progress.h"
#include "cli/doctor/doctor.h"
#include "cli/failure.h"
#include "cli/help.h"
#include "cli/inspect/explain.h"
#include "cli/inspect/graph.h"
#include "cli/inspect/kernels.h"
#include "cli/inspect/pass_options.h"
#include "cli/inspect/programs.h"
#include "cli/inspect/run.h"
#include "cli/option_numbers.h"
#include "cli/output.h"
#include "cli/train/sample.h"
#include "cli/train/train.h"
#include "cli/tune.h"
#include "licenses.h"
#include "runtime/execute/evaluator.h"
#include "runtime/webgpu/webgpu_device.h"
#include "target/target.h"

namespace anneal::cli {
namespace {

struct CommandRow {
  std::string_view group, name, arguments, does, example;
};

constexpr std::array<CommandRow, 11> kCommands{{
    {"use", "train", "MODEL", "trains a model, shows how it goes, keeps checkpoints",
     "anneal train mlp --save mlp.safetensors"},
    {"use", "run", "MODEL", "how good a model is on data it was not trained on",
     "anneal run mlp --resume mlp.safetensors"},
    {"use", "sample", "", "what a trained nanogpt writes",
     "anneal sample --resume gpt.safetensors"},
    {"look", "graph", "PROGRAM", "a training step as one graph, node by node",
     "anneal graph mlp --step"},
    {"look", "explain", "NAME",
     "an op, a function or a program: what it becomes, and by which rules",
     "anneal explain softmax"},
    {"look", "kernels", "PROGRAM", "the kernels it becomes, and why they are not fewer",
     "anneal kernels nanogpt"},
    {"measure", "bench", "NAME", "figures of ours beside those of peers, or of goals",
     "anneal bench gemm --threads 1,2"},
    {"measure", "tune", "PROGRAM", "measures other plans for its kernels, keeps what is faster",
     "anneal tune mlp --budget 30s"},
    {"measure", "doctor", "", "what this machine is, how fast, and what to repair",
     "anneal doctor"},
    {"other", "cache", "[ACTION]", "kernels on disk: show, clear, limit BYTES",
     "anneal cache limit 1G"},
    {"other", "help", "[COMMAND]", "this text, or that of a command", "anneal help graph"},
}};

std::string help_text() {
  std::string text = "anneal, a tensor compiler\n\nusage: anneal COMMAND [ARGS] [--json]\n";
  std::string_view group;
  for (const CommandRow& row : kCommands) {
    if (row.group != group) text += fmt::format("\n{}\n", paint(Colour::Bold, row.group));
    group = row.group;
    text += fmt::format("  {:<8} {:<10} {}\n", row.name, row.arguments, wrapped(row.does, 80, 22));
  }
  text += fmt::format("\nmodels: {}\nprograms: {}\n", fmt::join(models::model_names(), ", "),
                      fmt::join(program_names(), ", "));
  return text +
         "anneal COMMAND --help says more, with an example; anneal --version says which\n"
         "this is, anneal --licenses what it is made of\n";
}

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const CommandRow& row : kCommands) names.push_back(row.name);
  return names;
}

bool is_command(std::string_view name) { return std::ranges::count(command_names(), name) > 0; }

[[noreturn]] void fail_unknown_command(std::string_view wrong) {
  fail_unknown("command", wrong, command_names());
}

constexpr int64_t kMany = int64_t{1} << 40;  // steps that no run comes to
constexpr CountRange kThreads{1, 1024};

// A number of an option goes where it belongs once it is read.
template <typename To>
struct Held {
  using type = To;
};
template <typename T>
struct Held<std::optional<T>> {
  using type = T;
};

template <typename To>
CLI::Option* add_count(CLI::App& command, const std::string& name, To& to, const CountRange& range,
                       const std::string& text) {
  auto set = [=, &to](const std::string& given) {
    to = static_cast<typename Held<To>::type>(parse_count(name, given, range));
  };
  return command.add_option_function<std::string>(name, set, text)->type_name("N");
}

template <typename To>
CLI::Option* add_real(CLI::App& command, const std::string& name, To& to, const RealRange& range,
                      const char* type, const std::string& text) {
  auto set = [=, &to](const std::string& given) { to = parse_real(name, given, range); };
  return command.add_option_function<std::string>(name, set, text)->type_name(type);
}

CLI::Option* add_text(CLI::App& command, const std::string& name, std::string& to, const char* type,
                      const std::string& text) {
  return command.add_option(name, to, text)->type_name(type);
}

// The commands and their options; what they are set to goes to the structs.
struct CommandLine {
  CLI::App app{"anneal, a tensor compiler", "anneal"};
  GraphOptions graph_options;
  ExplainOptions explain_options;
  KernelsOptions kernels_options;
  BenchOptions bench_options;
  TuneCommandOptions tune_options;
  DoctorOptions doctor_options;
  TrainOptions train_options;
  InferenceOptions inference_options;
  SampleOptions sample_options;
  CacheOptions cache_options;
  PassOptions pass_options;
  bool step = false, version = false, licenses = false;
  std::string adapter, matmul_precision, memory_budget;

  CommandLine() {
    app.set_help_flag("-h,--help", "this text");
    app.add_flag("--version", version, "say which version this is");
    app.add_flag("--licenses", licenses, "the licences of anneal and of what it contains");
    add_train();
    add_run();
    add_sample();
    add_graph();
    add_explain();
    add_kernels();
    add_bench();
    add_tune();
    CLI::App& doctor_command = add("doctor");
    add_text(doctor_command, "--adapter", doctor_options.adapter, "NAME",
             "only this GPU, by its number or a part of its name (all); software: the driver that "
             "./dev webgpu installs");
    add_debug(doctor_command);
    add_json(doctor_command, doctor_options.json);

    CLI::App& cache_command = add("cache");
    cache_command.add_option("ACTION", cache_options.action,
                             "show (what it does anyway), clear or limit");
    cache_command.add_option("BYTES", cache_options.bytes,
                             "of limit: what may be kept, as 512M or 2G (512M)");
    add_json(cache_command, cache_options.json);
  }

  // Settings that not every device takes.
  void use_device_settings() {
    if (device_of_adapter_) {
      expect_setting("adapter", *device_of_adapter_,
                     fmt::format("--adapter {} names a GPU", adapter));
      set_webgpu_adapter(adapter);
      if (adapter == "software")
        fmt::print(stderr,
                   "note: this GPU is a program on the CPU: it computes the same, slowly\n");
    }
    if (device_of_precision_) {
      expect_setting("matmul-precision", *device_of_precision_,
                     fmt::format("--matmul-precision {} is for a GPU", matmul_precision));
      constexpr std::array<std::string_view, 2> kPrecisions{"full", "high"};
      if (std::ranges::count(kPrecisions, matmul_precision) == 0)
        fail_unknown("precision of products", matmul_precision, kPrecisions);
      kernels_options.wishes.precision =
          parse_matmul_precision(matmul_precision, "--matmul-precision");
      set_matmul_precision(kernels_options.wishes.precision);
    }
    if (device_of_budget_) {
      expect_setting("memory-budget", *device_of_budget_,
                     fmt::format("--memory-budget {} is for a GPU", memory_budget));
      const std::optional<int64_t> bytes = parse_bytes(memory_budget);
      if (!bytes || *bytes == 0)
        throw UsageError(
            fmt::format("--memory-budget is '{}', which is no number of bytes", memory_budget),
            "write 2G, or 2147483648");
      kernels_options.wishes.memory_bytes = *bytes;
      set_memory_budget(*bytes);
    }
  }

 private:
  // A named target takes all but an adapter.
  void expect_setting(std::string_view setting, const std::string& named,
                      std::string_view what) const {
    if (!kernels_options.target.empty()) return;
    const std::string device = named.empty() ? device_name() : named;
    const std::vector<std::string> takers = devices_with_setting(setting);
    if (std::ranges::count(takers, device) == 0)
      throw UsageError(fmt::format("{}, and the device is \"{}\"", what, device),
                       fmt::format("add --device {}", fmt::join(takers, " or ")));
  }

  // What is common to commands that use a model.
  void add_model(CLI::App& command, RunOptions& o) {
    std::string models;
    for (const models::ModelRow& row : models::model_rows())
      models += fmt::format("{}{}: {}", models.empty() ? "" : "; ", row.name, row.description);
    command.add_option("MODEL", o.model, models)->required();
    add_text(command, "--resume", o.resume, "PATH", "a checkpoint to go on from");
    add_text(command, "--data", o.data, "PATH",
             "a folder with MNIST's IDX files, or \"digits\" for drawn ones; a text file for "
             "nanogpt");
    add_count(command, "--batch", o.batch, {1, 1 << 20}, "images or texts a step");
    add_count(command, "--seed", o.seed, {}, "of parameters, data and samples (1)");
    add_count(command, "--layers", o.layers, {1, 1000}, "of nanogpt (4)");
    add_count(command, "--heads", o.heads, {1, 1 << 16}, "of nanogpt (4)");
    add_count(command, "--width", o.width, {1, 1 << 16},
              "of hidden layers; of conv, channels of the first layer");
    add_count(command, "--block", o.block, {1, 1 << 20}, "characters nanogpt sees (64)");
    add_text(command, "--dtype", o.dtype, "DTYPE",
             "that products are computed in: f32, bf16 or f16 (f32); parameters, statistics and "
             "losses are f32");
    add_count(command, "--threads", o.threads, kThreads, "of the CPU (all cores)");
    add_device(command, o.device);
  }

  void add_train() {
    CLI::App& command = add("train");
    TrainOptions& o = train_options;
    add_model(command, o.run);
    add_count(command, "--steps", o.steps, {0, kMany}, "in all, with those of --resume");
    add_real(command, "--lr", o.run.lr, {.above = true}, "RATE",
             "learning rate (0.001); on digits it warms up and falls to a twentieth");
    add_count(command, "--log-every", o.log_every, {1, kMany},
              "steps between lines (a twentieth of all), which come every 10 seconds at least");
    add_count(command, "--eval-every", o.eval_every, {0, kMany},
              "steps between evaluations (at the end)");
    add_text(command, "--save", o.save, "PATH", "where checkpoints go");
    add_count(command, "--save-every", o.save_every, {0, kMany},
              "steps between them (100); 0: at the end");
    CLI::Option* tune =
        command.add_flag("--tune", o.tune, "measure other plans for its kernels first: see tune");
    add_text(command, "--budget", o.budget, "TIME", "of --tune, as 30s or 2m (30s)")->needs(tune);
    add_passes(command);
    command.add_flag("--json", o.json, "one object a step, as JSON");
    command.add_flag("--plain", o.plain, "lines, on a terminal too");
  }

  void add_run() {
    CLI::App& command = add("run");
    add_model(command, inference_options.run);
    add_json(command, inference_options.json);
  }

  void add_sample() {
    CLI::App& command = add("sample");
    SampleOptions& o = sample_options;
    add_text(command, "--resume", o.resume, "PATH", "a checkpoint of nanogpt")->required();
    add_count(command, "--tokens", o.tokens, {0, 1 << 24}, "how many characters (500)");
    add_real(command, "--temperature", o.temperature, {.most = 100}, "T",
             "0 takes the likeliest, 1 as learned (0.8)");
    add_count(command, "--seed", o.seed, {}, "of the choices (1)");
    add_text(command, "--prompt", o.prompt, "TEXT", "what it starts with (a new line)");
    add_device(command, o.device);
    add_json(command, o.json);
  }

  void add_graph() {
    CLI::App& command = add("graph");
    command.add_option("PROGRAM", graph_options.program, programs_text())->required();
    add_scope(command, graph_options.forward);
    add_debug(command);
    add_json(command, graph_options.json);
  }

  void add_explain() {
    CLI::App& command = add("explain");
    command
        .add_option("NAME", explain_options.target,
                    "an op (exp, reduce_sum), a function that is made of them (softmax, conv2d) or "
                    "a program (mlp)")
        ->required();
    add_count(command, "--events", explain_options.events, {.most = 1'000'000},
              "of each pass over a program, so many rewrites are shown (1)");
    command
        .add_option("--disable", explain_options.disabled,
                    "a rule set or set/rule to leave out; may be repeated")
        ->take_all()
        ->type_name("RULE");
    add_passes(command);
    add_debug(command);
    add_json(command, explain_options.json);
  }

  void add_kernels() {
    CLI::App& command = add("kernels");
    KernelsOptions& o = kernels_options;
    command.add_option("PROGRAM", o.program, programs_text())->required();
    add_scope(command, o.forward);
    CLI::Option* source =
        add_text(command, "--source", o.source, "FORM",
                 fmt::format("the kernels themselves, as {}", fmt::join(source_forms(), ", ")));
    CLI::Option* plan = command.add_flag(
        "--plan", o.plan, "how each is planned, what it is expected to take, and the runners-up");
    plan->excludes(source);
    command.add_flag("--time", o.time, "run them, and say how long each takes")
        ->excludes(source)
        ->excludes(plan);
    add_count(command, "--kernel", o.kernel, {.most = 1 << 24}, "only this one");
    add_device(command, o.device);
    CLI::Option* target = add_text(command, "--target", o.target, "NAME", targets_text());
    for (const char* other : {"--device", "--adapter", "--time"})
      target->excludes(command.get_option(other));
    add_passes(command);
    add_json(command, o.json);
  }

  void add_bench() {
    CLI::App& command = add("bench");
    BenchOptions& o = bench_options;
    command.add_option("NAME", o.name, fmt::format("{}", fmt::join(bench_names(), ", ")))
        ->required();
    auto set_threads = [&o](const std::string& given) {
      o.threads = parse_counts("--threads", given, kThreads);
    };
    command
        .add_option_function<std::string>(
            "--threads", set_threads,
            "how many threads both sides use, one run each: 1,2 (one, and all cores of a CPU)")
        ->type_name("N,N");
    add_text(command, "--case", o.only, "TEXT", "only cases whose name contains this");
    add_real(command, "--seconds", o.seconds, {}, "S", "to measure one side of a row (0.5)");
    add_device(command, o.device);
    add_json(command, o.json);
  }

  void add_tune() {
    CLI::App& command = add("tune");
    TuneCommandOptions& o = tune_options;
    command.add_option("PROGRAM", o.program, programs_text())->required();
    add_scope(command, o.forward);
    add_text(command, "--budget", o.budget, "TIME", "to search in, as 30s or 2m (30s)");
    add_count(command, "--threads", o.threads, kThreads, "of the CPU (all cores)");
    add_device(command, o.device);
    add_json(command, o.json);
  }

  void add_scope(CLI::App& command, bool& forward) {
    CLI::Option* only = command.add_flag("--forward", forward, "only what the loss needs");
    command.add_flag("--step", step, "loss, gradients and updates (what it does anyway)")
        ->excludes(only);
  }

  static void add_json(CLI::App& command, bool& json) {
    command.add_flag("--json", json, "as JSON; errors too");
  }

  void add_passes(CLI::App& command) {
    command
        .add_option("--disable-pass", pass_options.disabled,
                    "a pass of the compiler to leave out, a rule set or set/rule; may be repeated")
        ->take_all()
        ->type_name("PASS");
    add_text(command, "--dump-after", pass_options.dump_after, "PASS",
             "show what this pass made, on standard error; all: every pass");
    command.add_flag("--time-passes", pass_options.time,
                     "say how long each pass took, on standard error");
  }

  static void add_debug(CLI::App& command) {
    auto set = [](const std::string& given) {
      set_debug_level(static_cast<Debug>(parse_count("--debug", given, {0, kMostDebug})));
    };
    command
        .add_option_function<std::string>(
            "--debug", set,
            "say on standard error what the compiler does: 1: each program, and what libraries for "
            "GPUs have to say; 2: kernels too, with times; 3: every pass too (ANNEAL_DEBUG, else "
            "0)")
        ->type_name("LEVEL");
  }

  void add_device(CLI::App& command, std::string& device) {
    add_text(command, "--device", device, "NAME", devices_text());
    add_text(command, "--adapter", adapter, "NAME",
             "the GPU of device webgpu, by its number or a part of its name, as doctor lists them "
             "(ANNEAL_ADAPTER, else the first); software: a driver that computes on the CPU, "
             "slowly, which ./dev webgpu installs")
        ->each([this, &device](const std::string&) { device_of_adapter_ = &device; });
    add_text(command, "--matmul-precision", matmul_precision, "HOW",
             "of device webgpu: full, or high for products of f32 to about 22 bits on units for "
             "matrices, where the GPU has them (ANNEAL_MATMUL_PRECISION, else full)")
        ->each([this, &device](const std::string&) { device_of_precision_ = &device; });
    add_text(command, "--memory-budget", memory_budget, "BYTES",
             "of device webgpu: what the temporaries of a program may take before large ones are "
             "computed piece by piece, as 2G (ANNEAL_MEMORY_BUDGET, else the largest buffer)")
        ->each([this, &device](const std::string&) { device_of_budget_ = &device; });
    add_debug(command);
  }

  static std::string programs_text() { return fmt::format("{}", fmt::join(program_names(), ", ")); }

  static std::string targets_text() {
    std::vector<std::string_view> names;
    for (const Target& target : named_targets()) names.emplace_back(target.name);
    return fmt::format("for a machine that need not be here, instead of a device: {}",
                       fmt::join(names, ", "));
  }

  static std::string devices_text() {
    return fmt::format("the device: {} (ANNEAL_DEVICE, else the first)",
                       fmt::join(devices(), ", "));
  }

  CLI::App& add(std::string_view name) {
    for (const CommandRow& row : kCommands)
      if (row.name == name) {
        CLI::App& command = *app.add_subcommand(std::string(name), std::string(row.does));
        return *command.footer(fmt::format("example: {}", row.example));
      }
    throw InternalError(fmt::format("command {} has no row", name));
  }

  // Of the command that was given the option.
  const std::string* device_of_adapter_ = nullptr;
  const std::string* device_of_precision_ = nullptr;
  const std::string* device_of_budget_ = nullptr;
};

// Not a command of CLI11's, which would take the COMMAND after it for one to run.
int show_help(std::span<char* const> commands) {
  if (commands.empty() || commands[0] == std::string_view("help"))
    return write(help_text()), kWorked;
  if (!is_command(commands[0])) fail_unknown_command(commands[0]);
  CommandLine line;
  return write(command_help(*line.app.get_subcommand(commands[0]))), kWorked;
}

int run_command(CommandLine& line) {
  const CompileProgressLine progress;
  if (line.app.got_subcommand("train")) return train(line.train_options);
  if (line.app.got_subcommand("run")) return run_model(line.inference_options), kWorked;
  if (line.app.got_subcommand("sample")) return sample(line.sample_options), kWorked;
  if (line.app.got_subcommand("graph")) return graph(line.graph_options), kWorked;
  if (line.app.got_subcommand("explain")) return explain(line.explain_options), kWorked;
  if (line.app.got_subcommand("kernels")) return kernels(line.kernels_options), kWorked;
  if (line.app.got_subcommand("bench")) return bench(line.bench_options) ? kWorked : kFailed;
  if (line.app.got_subcommand("cache")) return cache(line.cache_options), kWorked;
  if (line.app.got_subcommand("tune")) return tune(line.tune_options), kWorked;
  if (line.app.got_subcommand("doctor")) return doctor(line.doctor_options) ? kWorked : kFailed;
  return show_help({});
}

int run_with_settings(CommandLine& line) {
  if (line.version) return write("anneal " ANNEAL_VERSION "\n"), kWorked;
  if (line.licenses) return write(kLicenses), kWorked;
  line.use_device_settings();
  use_pass_options(line.pass_options);
  const int code = run_command(line);
  write_pass_times(line.pass_options);
  return code;
}

// A name that starts with dashes and that no option has.
[[noreturn]] void fail_unknown_option(const CLI::App& command, const std::string& wrong) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    if (!option->get_positional()) names.push_back("--" + option->get_lnames().front());
  const std::string given = wrong.substr(0, wrong.find('='));
  const std::vector<std::string_view> near =
      near_names(given, std::vector<std::string_view>(names.begin(), names.end()));
  throw UsageError(
      fmt::format("{} has no option {}", command.get_name(), given),
      fmt::format("{}anneal {} --help lists what it takes",
                  near.empty() ? "" : fmt::format("did you mean {}? ", fmt::join(near, ", ")),
                  command.get_name()));
}

void parse(CommandLine& line, int argc, char** argv) {
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const std::vector<CLI::App*> chosen = line.app.get_subcommands();
    if (dynamic_cast<const CLI::CallForHelp*>(&error)) throw;
    if (chosen.empty()) throw UsageError(error.what(), "anneal help lists the commands");
    const std::vector<std::string> extras = line.app.remaining(true);
    if (!extras.empty() && extras[0].starts_with("--")) fail_unknown_option(*chosen[0], extras[0]);
    const std::string name = chosen[0]->get_name();
    throw UsageError(
        extras.empty() ? error.what() : fmt::format("{} does not take '{}'", name, extras[0]),
        fmt::format("anneal {} --help lists what it takes", name));
  }
}

int run(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (!first.empty() && first[0] != '-' && !is_command(first)) fail_unknown_command(first);
  if (first == "help") return show_help(std::span(argv, static_cast<size_t>(argc)).subspan(2));

  CommandLine line;
  try {
    parse(line, argc, argv);
  } catch (const CLI::CallForHelp&) {
    const std::vector<CLI::App*> chosen = line.app.get_subcommands();
    return write(chosen.empty() ? help_text() : command_help(*chosen[0])), kWorked;
  }
  return run_with_settings(line);
}

// Before the command line is understood: how failures are to be told.
bool wants_json(std::span<char* const> arguments) {
  return std::ranges::any_of(arguments,
                             [](const char* each) { return each == std::string_view("--json"); });
}

int run_reporting(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    flush();
    return code;
  } catch (...) {
    return report_failure(wants_json(std::span(argv, static_cast<size_t>(argc))));
  }
}

}  // namespace
}  // namespace anneal::cli

int main(int argc, char** argv) {
#ifdef SIGPIPE
  // A reader that went away shows as a failed write: see OutputError.
  std::signal(SIGPIPE, SIG_IGN);
#endif
#ifdef SIGXFSZ
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on files shows as a failed write, as a full disk does
#endif
  anneal::read_notices([](std::string_view what, std::string_view hint) {
    fmt::print(stderr, "notice: {}\n  hint: {}\n", what, hint);
  });
  return anneal::cli::run_reporting(argc, argv);
}
