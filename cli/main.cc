// anneal, the program: reads the command line and hands over to one function a command. Exit codes:
// 0 it worked, 1 it failed, 2 the command line makes no sense, 130 it was interrupted.
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <limits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <anneal/device.h>
#include <anneal/error.h>

#include "anneal_version.h"
#include "base/notice.h"
#include "bench.h"
#include "cache.h"
#include "compile_progress.h"
#include "doctor.h"
#include "explain.h"
#include "graph.h"
#include "kernels.h"
#include "licenses.h"
#include "output.h"
#include "programs.h"
#include "run.h"
#include "runtime/webgpu/webgpu_device.h"
#include "sample.h"
#include "train.h"

namespace anneal::cli {
namespace {

enum Exit : int { kWorked = 0, kFailed = 1, kUsage = 2 };

struct CommandRow {
  std::string_view group, name, arguments, does, example;
};

constexpr std::array<CommandRow, 10> kCommands{{
    {"use", "train", "MODEL", "trains a model, shows how it goes, keeps checkpoints",
     "anneal train mlp --save mlp.safetensors"},
    {"use", "run", "MODEL", "how good a model is on data it was not trained on",
     "anneal run mlp --resume mlp.safetensors"},
    {"use", "sample", "", "what a trained nanogpt writes",
     "anneal sample --resume gpt.safetensors"},
    {"look", "graph", "PROGRAM", "a training step as one graph, node by node",
     "anneal graph mlp --step"},
    {"look", "explain", "OP|PROGRAM", "an op's rules, or the rules that rewrote a program",
     "anneal explain exp"},
    {"look", "kernels", "PROGRAM", "the kernels it becomes, and why they are not fewer",
     "anneal kernels mlp"},
    {"measure", "bench", "NAME", "figures of ours beside those of peers, or of goals",
     "anneal bench gemm --threads 1,2"},
    {"measure", "doctor", "", "what this machine is, how fast, and what to repair",
     "anneal doctor"},
    {"other", "cache", "[ACTION]", "kernels on disk: show, clear, limit BYTES",
     "anneal cache limit 1G"},
    {"other", "help", "[COMMAND]", "this text, or that of a command", "anneal help graph"},
}};

// A seed is an integer of 63 bits; CLI11 would take the nearest one for what is beyond.
const CLI::Validator& is_seed() {
  static const CLI::Validator validator(
      [](const std::string& text) -> std::string {
        int64_t seed = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
        if (error == std::errc() && end == text.data() + text.size() && seed >= 0) return "";
        return fmt::format("{} is no seed: give an integer from 0 to {}", text,
                           std::numeric_limits<int64_t>::max());
      },
      "");
  return validator;
}

std::string help_text() {
  std::string text = "anneal, a tensor compiler\n\nusage: anneal COMMAND [ARGS] [--json]\n";
  std::string_view group;
  for (const CommandRow& row : kCommands) {
    if (row.group != group) text += fmt::format("\n{}\n", paint(Colour::Bold, row.group));
    group = row.group;
    text += fmt::format("  {:<8} {:<11} {:<52} {}\n", row.name, row.arguments, row.does,
                        paint(Colour::Dim, row.example));
  }
  text += fmt::format("\nmodels: {}\nprograms: {}\n", fmt::join(model_names(), ", "),
                      fmt::join(program_names(), ", "));
  return text +
         "anneal COMMAND --help says more; anneal --version says which this is,\n"
         "anneal --licenses what it is made of\n";
}

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const CommandRow& row : kCommands) names.push_back(row.name);
  return names;
}

bool is_command(std::string_view name) { return std::ranges::count(command_names(), name) > 0; }

int usage_error(std::string_view message, std::string_view hint) {
  fmt::print(stderr, "error: {}\n  hint: {}\n", message, hint);
  return kUsage;
}

int unknown_command(std::string_view wrong) {
  const std::vector<std::string_view> near = near_names(wrong, command_names());
  return usage_error(fmt::format("there is no command '{}'", wrong),
                     near.empty() ? "anneal help lists the commands"
                                  : fmt::format("did you mean {}?", fmt::join(near, ", ")));
}

// The commands and their options; what they are set to goes to the structs.
struct CommandLine {
  CLI::App app{"anneal, a tensor compiler", "anneal"};
  GraphOptions graph_options;
  ExplainOptions explain_options;
  KernelsOptions kernels_options;
  BenchOptions bench_options;
  DoctorOptions doctor_options;
  CacheOptions cache_options;
  TrainOptions train_options;
  InferenceOptions inference_options;
  SampleOptions sample_options;
  bool step = false, version = false, licenses = false;
  std::string adapter, matmul_precision;

  CommandLine() {
    app.add_flag("--version", version, "say which version this is");
    app.add_flag("--licenses", licenses, "the licences of anneal and of what it contains");
    add_train();
    add_run();
    add_sample();
    CLI::App& graph_command = add("graph");
    graph_command.add_option("PROGRAM", graph_options.program, programs_text())->required();
    CLI::Option* forward =
        graph_command.add_flag("--forward", graph_options.forward, "only what the loss needs");
    graph_command.add_flag("--step", step, "loss, gradients and updates (what it does anyway)")
        ->excludes(forward);
    graph_command.add_flag("--json", graph_options.json, "as JSON");

    CLI::App& explain_command = add("explain");
    explain_command
        .add_option("OP|PROGRAM", explain_options.target, "an op (exp, reduce_sum) or a program")
        ->required();
    explain_command
        .add_option("--events", explain_options.events, "rewrites of a program to show (5)")
        ->check(CLI::NonNegativeNumber);
    explain_command
        .add_option("--disable", explain_options.disabled,
                    "a rule set or set/rule to leave out; may be repeated")
        ->take_all();
    explain_command.add_flag("--json", explain_options.json, "as JSON");

    CLI::App& kernels_command = add("kernels");
    kernels_command.add_option("PROGRAM", kernels_options.program, programs_text())->required();
    CLI::Option* only_forward =
        kernels_command.add_flag("--forward", kernels_options.forward, "only what the loss needs");
    kernels_command.add_flag("--step", step, "loss, gradients and updates (what it does anyway)")
        ->excludes(only_forward);
    add_device(kernels_command, kernels_options.device);
    CLI::Option* source = kernels_command.add_option(
        "--source", kernels_options.source,
        fmt::format("the kernels themselves, as {}", fmt::join(source_forms(), ", ")));
    kernels_command
        .add_flag("--time", kernels_options.time, "run them, and say how long each takes")
        ->excludes(source);
    kernels_command.add_option("--kernel", kernels_options.kernel, "only this one")
        ->check(CLI::NonNegativeNumber);
    kernels_command.add_flag("--json", kernels_options.json, "as JSON");

    CLI::App& bench_command = add("bench");
    bench_command
        .add_option("NAME", bench_options.name, fmt::format("{}", fmt::join(bench_names(), ", ")))
        ->required();
    bench_command
        .add_option(
            "--threads", bench_options.threads,
            "how many threads both sides use, one run each: 1,2 (one, and all cores of a CPU)")
        ->delimiter(',')
        ->check(CLI::Range(1, 1024));
    add_device(bench_command, bench_options.device);
    bench_command.add_option("--case", bench_options.only, "only cases whose name contains this");
    bench_command
        .add_option("--seconds", bench_options.seconds, "to measure one side of a row (0.5)")
        ->check(CLI::NonNegativeNumber);
    bench_command.add_flag("--json", bench_options.json, "as JSON");

    CLI::App& doctor_command = add("doctor");
    doctor_command.add_option("--adapter", doctor_options.adapter,
                              "only this GPU, by its number or a part of its name (all)");
    doctor_command.add_flag("--json", doctor_options.json, "as JSON");

    CLI::App& cache_command = add("cache");
    cache_command.add_option("ACTION", cache_options.action,
                             "show (what it does anyway), clear or limit");
    cache_command.add_option("BYTES", cache_options.bytes,
                             "of limit: what may be kept, as 512M or 2G (512M)");
    cache_command.add_flag("--json", cache_options.json, "as JSON");
  }

  // What is for WebGPU alone.
  void use_gpu_options() const {
    if (device_of_adapter_) {
      expect_gpu(*device_of_adapter_, fmt::format("--adapter {} names a GPU", adapter));
      set_webgpu_adapter(adapter);
    }
    if (device_of_precision_) {
      expect_gpu(*device_of_precision_,
                 fmt::format("--matmul-precision {} is for a GPU", matmul_precision));
      set_matmul_precision(parse_matmul_precision(matmul_precision, "--matmul-precision"));
    }
  }

 private:
  static void expect_gpu(const std::string& named, std::string_view what) {
    const std::string device = named.empty() ? device_name() : named;
    if (device != "webgpu")
      throw UserError(fmt::format("{}, and the device is \"{}\"", what, device),
                      "add --device webgpu", {});
  }

  // What is common to commands that use a model.
  void add_model(CLI::App& command, RunOptions& o) {
    std::string models;
    for (const ModelRow& row : model_rows())
      models += fmt::format("{}{}: {}", models.empty() ? "" : "; ", row.name, row.description);
    command.add_option("MODEL", o.model, models)->required();
    command.add_option("--resume", o.resume, "a checkpoint to go on from");
    command.add_option("--data", o.data,
                       "a folder with MNIST's IDX files, or \"digits\" for drawn ones; a text file "
                       "for nanogpt");
    command.add_option("--batch", o.batch, "images or texts a step")->check(CLI::Range(1, 1 << 20));
    command.add_option("--seed", o.seed, "of parameters, data and samples (1)")->check(is_seed());
    command.add_option("--layers", o.layers, "of nanogpt (4)")->check(CLI::Range(1, 1000));
    command.add_option("--heads", o.heads, "of nanogpt (4)")->check(CLI::Range(1, 1 << 16));
    command
        .add_option("--width", o.width, "of hidden layers; of conv, channels of the first layer")
        ->check(CLI::Range(1, 1 << 16));
    command.add_option("--block", o.block, "characters nanogpt sees (64)")
        ->check(CLI::Range(1, 1 << 20));
    command.add_option("--dtype", o.dtype,
                       "that products are computed in: f32, bf16 or f16 (f32); parameters, "
                       "statistics and losses are f32");
    command.add_option("--threads", o.threads, "of the CPU (all cores)")
        ->check(CLI::Range(1, 1024));
    add_device(command, o.device);
  }

  void add_train() {
    CLI::App& command = add("train");
    TrainOptions& o = train_options;
    add_model(command, o.run);
    command.add_option("--steps", o.steps, "in all, with those of --resume")
        ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
    command
        .add_option("--lr", o.run.lr,
                    "learning rate (0.001); on digits it warms up and falls to a twentieth")
        ->check([](const std::string& text) -> std::string {
          double rate = 0;
          const bool number = CLI::detail::lexical_cast(text, rate);
          if (number && std::isfinite(rate) && rate > 0) return "";
          return fmt::format("\"{}\" is no learning rate: give a number above 0", text);
        });
    command.add_option("--log-every", o.log_every, "steps between lines (a twentieth of all)")
        ->check(CLI::PositiveNumber);
    command.add_option("--eval-every", o.eval_every, "steps between evaluations (at the end)")
        ->check(CLI::NonNegativeNumber);
    command.add_option("--save", o.save, "where checkpoints go");
    command.add_option("--save-every", o.save_every, "steps between them (100); 0: at the end")
        ->check(CLI::NonNegativeNumber);
    command.add_flag("--json", o.json, "one object a step, as JSON");
    command.add_flag("--plain", o.plain, "lines, on a terminal too");
  }

  void add_run() {
    CLI::App& command = add("run");
    add_model(command, inference_options.run);
    command.add_flag("--json", inference_options.json, "as JSON");
  }

  void add_sample() {
    CLI::App& command = add("sample");
    SampleOptions& o = sample_options;
    command.add_option("--resume", o.resume, "a checkpoint of nanogpt")->required();
    command.add_option("--tokens", o.tokens, "how many characters (500)")
        ->check(CLI::Range(0, 1 << 24));
    command.add_option("--temperature", o.temperature, "0 takes the likeliest, 1 as learned (0.8)")
        ->check(CLI::Range(0.0, 100.0));
    command.add_option("--seed", o.seed, "of the choices (1)")->check(is_seed());
    command.add_option("--prompt", o.prompt, "what it starts with (a new line)");
    add_device(command, o.device);
    command.add_flag("--json", o.json, "as JSON");
  }

  void add_device(CLI::App& command, std::string& device) {
    command.add_option("--device", device, devices_text());
    command
        .add_option("--adapter", adapter,
                    "the GPU of device webgpu, by its number or a part of its name, as doctor "
                    "lists them (ANNEAL_ADAPTER, else the first)")
        ->each([this, &device](const std::string&) { device_of_adapter_ = &device; });
    command
        .add_option("--matmul-precision", matmul_precision,
                    "of device webgpu: full, or high for products of f32 to about 22 bits on units "
                    "for matrices, where the GPU has them (ANNEAL_MATMUL_PRECISION, else full)")
        ->each([this, &device](const std::string&) { device_of_precision_ = &device; });
  }

  static std::string programs_text() { return fmt::format("{}", fmt::join(program_names(), ", ")); }

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
};

// Not a command of CLI11's, which would take the COMMAND after it for one to run.
int show_help(std::span<char* const> commands) {
  if (commands.empty() || commands[0] == std::string_view("help"))
    return write(help_text()), kWorked;
  if (!is_command(commands[0])) return unknown_command(commands[0]);
  CommandLine line;
  return write(line.app.get_subcommand(commands[0])->help("anneal")), kWorked;
}

int run_command(CommandLine& line) {
  if (line.version) return write("anneal " ANNEAL_VERSION "\n"), kWorked;
  if (line.licenses) return write(kLicenses), kWorked;
  line.use_gpu_options();
  const CompileProgressLine progress;
  if (line.app.got_subcommand("train")) return train(line.train_options);
  if (line.app.got_subcommand("run")) return run_model(line.inference_options), kWorked;
  if (line.app.got_subcommand("sample")) return sample(line.sample_options), kWorked;
  if (line.app.got_subcommand("graph")) return graph(line.graph_options), kWorked;
  if (line.app.got_subcommand("explain")) return explain(line.explain_options), kWorked;
  if (line.app.got_subcommand("kernels")) return kernels(line.kernels_options), kWorked;
  if (line.app.got_subcommand("bench")) return bench(line.bench_options) ? kWorked : kFailed;
  if (line.app.got_subcommand("doctor")) return doctor(line.doctor_options) ? kWorked : kFailed;
  if (line.app.got_subcommand("cache")) return cache(line.cache_options), kWorked;
  return show_help({});
}

int run(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (!first.empty() && first[0] != '-' && !is_command(first)) return unknown_command(first);
  if (first == "help") return show_help(std::span(argv, static_cast<size_t>(argc)).subspan(2));

  CommandLine line;
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const std::vector<CLI::App*> chosen = line.app.get_subcommands();
    write(chosen.empty() ? help_text() : chosen[0]->help("anneal"));
    return kWorked;
  } catch (const CLI::ParseError& error) {
    const std::vector<CLI::App*> chosen = line.app.get_subcommands();
    return usage_error(error.what(), chosen.empty()
                                         ? "anneal help lists the commands"
                                         : fmt::format("anneal {} --help lists what it takes",
                                                       chosen[0]->get_name()));
  }
  return run_command(line);
}

int run_reporting(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const UserError& error) {
    fmt::print(stderr, "{}\n", error.what());
  } catch (const InternalError& error) {
    fmt::print(stderr,
               "{}\n  this is a bug in anneal {}, not in what you did: please report it with the "
               "command line\n",
               error.what(), ANNEAL_VERSION);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
  }
  return kFailed;
}

}  // namespace
}  // namespace anneal::cli

int main(int argc, char** argv) {
#ifdef SIGPIPE
  // A reader that went away shows as a failed write, which finish_output() knows.
  std::signal(SIGPIPE, SIG_IGN);
#endif
#ifdef SIGXFSZ
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on files shows as a failed write, as a full disk does
#endif
  anneal::read_notices([](std::string_view what, std::string_view hint) {
    fmt::print(stderr, "notice: {}\n  hint: {}\n", what, hint);
  });
  const int code = anneal::cli::run_reporting(argc, argv);
  return anneal::cli::finish_output() ? code : anneal::cli::kFailed;
}
