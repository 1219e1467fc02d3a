// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <string_view>

#include "support/option_values.h"
#include "support/reference.h"

namespace ddlctl {
namespace {

using trainer::ControlOrder;

constexpr std::string_view kDisplayEvery = "display_every=";
constexpr std::string_view kExportEnding = ".safetensors";

// Nothing but "display_every=N".
std::optional<std::int64_t> DisplayEvery(std::string_view setting) {
  if (!setting.starts_with(kDisplayEvery)) return std::nullopt;
  setting.remove_prefix(kDisplayEvery.size());
  std::int64_t steps = 0;
  const char* const end = setting.data() + setting.size();
  const auto result = std::from_chars(setting.data(), end, steps);
  const bool fits = result.ec == std::errc() && result.ptr == end && steps >= 1 &&
                    steps <= trainer::kMaxDisplayEvery;
  return fits ? std::optional(steps) : std::nullopt;
}

CLI::App* AddCommand(CLI::App& app, Options& options, Command command, const std::string& name,
                     const std::string& description) {
  CLI::App* subcommand = app.add_subcommand(name, description);
  // Of a command below another one it is the lower that counts.
  subcommand->parse_complete_callback([&options, command, subcommand] {
    if (subcommand->get_subcommands().empty()) options.command = command;
  });
  return subcommand;
}

// What every command for a training has.  Returns the operand that says which.
CLI::Option* AddWhere(CLI::App* subcommand, Options& options) {
  CLI::Option* where = subcommand->add_option("RESULTS_DIR", options.results_dir,
                                              "The --results_dir of the training");
  where->required();
  subcommand
      ->add_option("--job", options.job,
                   "Slurm's number of the job that the training is in, where the training does not "
                   "know it itself")
      ->type_name("JOB")
      ->check(CLI::Validator(
          [](const std::string& text) {
            const bool is_id =
                !text.empty() && text.find_first_not_of("0123456789_+") == std::string::npos;
            return is_id ? std::string() : "needs the number of a job, not '" + text + "'";
          },
          ""));
  subcommand
      ->add_option("--srun", options.srun,
                   "Where the training runs on another node: run there by srun --overlap, or never")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "never"}))
      ->take_last();
  return where;
}

// Nothing but the number of a step.
std::optional<std::int64_t> StepOf(const std::string& text) {
  std::int64_t step = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, step);
  return result.ec == std::errc() && result.ptr == end && step >= 0 ? std::optional(step)
                                                                    : std::nullopt;
}

// A command below `checkpoint`, which then asks no training.
CLI::App* AddFileCommand(CLI::App* checkpoint, CLI::Option* where, Options& options,
                         Command command, const std::string& name, const std::string& description) {
  CLI::App* subcommand = AddCommand(*checkpoint, options, command, name, description);
  subcommand->preparse_callback([where, name](std::size_t) {
    if (where->count() > 0) {
      throw CLI::ValidationError("checkpoint " + name + " DIR is the order of the words");
    }
  });
  subcommand
      ->add_option("DIR", options.model_dir,
                   "The --model_dir of the training, as a rule its --results_dir")
      ->required();
  return subcommand;
}

CLI::Option* AddStep(CLI::App* subcommand, std::string& step) {
  return subcommand->add_option("STEP", step, "The checkpoint of this step");
}

// `checkpoint list`, `checkpoint verify` and `checkpoint export`.
void AddFileCommands(CLI::App* checkpoint, CLI::Option* where, Options& options) {
  AddFileCommand(checkpoint, where, options, Command::kListCheckpoints, "list",
                 "Show the checkpoints that are there: step, epochs, size, when they were written, "
                 "network, version, and whether they look whole");
  CLI::App* verify =
      AddFileCommand(checkpoint, where, options, Command::kVerifyCheckpoints, "verify",
                     "Read all of every checkpoint, or of one, and compare all checksums");
  AddStep(verify, options.step_text)
      ->check(CLI::Validator(
          [](const std::string& text) {
            return StepOf(text) ? std::string() : "needs the number of a step, not '" + text + "'";
          },
          ""));
  verify->callback([&options] { options.step = StepOf(options.step_text); });
  CLI::App* exported =
      AddFileCommand(checkpoint, where, options, Command::kExportCheckpoint, "export",
                     "Write the weights of the newest valid checkpoint, or of one, to a new file: "
                     "safetensors with torchvision's names, as ddltraind --export_dir");
  AddStep(exported, options.step_text);
  exported->add_option("FILE", options.export_file, "The new file, *.safetensors");
  exported->callback([&options] {
    // Of one word it is FILE.
    if (options.export_file.empty()) options.export_file.swap(options.step_text);
    if (!options.export_file.ends_with(kExportEnding)) {
      throw CLI::ValidationError(options.export_file.empty()
                                     ? "FILE is required: DIR [STEP] FILE.safetensors"
                                     : "FILE needs a name that ends in .safetensors, not '" +
                                           options.export_file + "'");
    }
    if (options.step_text.empty()) return;
    options.step = StepOf(options.step_text);
    if (!options.step) {
      throw CLI::ValidationError("STEP needs the number of a step, not '" + options.step_text +
                                 "'");
    }
  });
}

void AddOrder(CLI::App& app, Options& options, ControlOrder order, const std::string& description) {
  CLI::App* subcommand =
      AddCommand(app, options, Command::kOrder, std::string(trainer::NameOf(order)), description);
  if (order == ControlOrder::kSet) {
    subcommand->add_option("SETTING", options.setting, "display_every=N: steps, from 1")
        ->required()
        ->check(CLI::Validator(
            [](const std::string& text) {
              return DisplayEvery(text) ? std::string()
                                        : "needs display_every=N, N from 1, not '" + text + "'";
            },
            ""));
  }
  CLI::Option* where = AddWhere(subcommand, options);
  if (order == ControlOrder::kCheckpoint) {
    // CLI11 would take the name of a command below for an operand that is required.
    where->required(false);
    AddFileCommands(subcommand, where, options);
  }
  if (order != ControlOrder::kSet) {
    subcommand->add_flag("--no-wait", options.no_wait,
                         "End as soon as the training has taken the order, not when it is obeyed");
  }
  subcommand->callback([&options, order, subcommand] {
    if (!subcommand->get_subcommands().empty()) return;
    if (options.results_dir.empty()) throw CLI::RequiredError("RESULTS_DIR");
    options.request.order = order;
    options.request.display_every = DisplayEvery(options.setting).value_or(0);
  });
}

}  // namespace

void DescribeOptions(CLI::App& app, Options& options) {
  app.set_version_flag("--version", DDLRUN_VERSION);
  app.footer(support::kReferenceLine);

  CLI::App* status = AddCommand(app, options, Command::kStatus, "status",
                                "Say what the training does, or how it has ended; or what ddlrun "
                                "knows of a job with any program, by its number or run directory");
  AddWhere(status, options);
  status->add_flag("--json", options.as_json, "As JSON, in one line");

  CLI::App* watch = AddCommand(app, options, Command::kWatch, "watch",
                               "Show what the training does until it ends: on a terminal a view, "
                               "redrawn in place, else a line from time to time");
  AddWhere(watch, options);
  watch->add_option("--interval", options.interval, "Between two looks; 1 on a terminal, else 10")
      ->type_name("SECONDS")
      ->check(CLI::Validator(
          [](const std::string& text) {
            double value = 0;
            const bool fits = CLI::detail::lexical_cast(text, value) && value >= 0.1 &&
                              value <= 3600 && std::isfinite(value);
            return fits ? std::string() : "needs 0.1 to 3600 seconds, not '" + text + "'";
          },
          ""));

  AddOrder(app, options, ControlOrder::kPause,
           "Let all ranks rest after the step under way; they keep their memory");
  AddOrder(app, options, ControlOrder::kResume, "Let a training that is paused go on");
  AddOrder(app, options, ControlOrder::kCheckpoint,
           "Have a checkpoint written after the step under way; or look at those that are there: "
           "list, verify, export");
  AddOrder(app, options, ControlOrder::kEvaluate,
           "Have the weights evaluated after the step under way; training then goes on");
  AddOrder(app, options, ControlOrder::kStop,
           "Have a checkpoint written and the training end, with 75");
  AddOrder(app, options, ControlOrder::kSet, "Change a setting from the next step on");

  CLI::App* stacks =
      AddCommand(app, options, Command::kStacks, "stacks",
                 "Show where every rank is right now, function by function, also while ranks hang: "
                 "first those that do not answer or are alone in what they do");
  AddWhere(stacks, options);
  stacks->add_flag("--all-threads", options.all_threads,
                   "All threads of every rank, not only the main one of each group of ranks");
  support::RefuseSlips(app);
}

}  // namespace ddlctl
