// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/options.h"

#include <cmath>
#include <string_view>
#include <utility>

#include "support/build.h"
#include "support/number.h"

namespace ddlctl {
namespace {

using support::Checked;
using support::MakeCommand;
using support::Needs;
using support::OneOf;
using support::Option;
using support::Required;
using support::WithDefault;
using trainer::ControlCommand;

constexpr std::string_view kDisplayEvery = "display_every=";
constexpr std::string_view kExportEnding = ".safetensors";

// Nothing but "display_every=N".
std::optional<std::int64_t> DisplayEvery(std::string_view setting) {
  if (!setting.starts_with(kDisplayEvery)) return std::nullopt;
  setting.remove_prefix(kDisplayEvery.size());
  const auto steps = support::WholeNumber<std::int64_t>(setting);
  return steps >= 1 && steps <= trainer::kMaxDisplayEvery ? steps : std::nullopt;
}

// Nothing but the number of a step.
std::optional<std::int64_t> StepOf(const std::string& text) {
  const auto step = support::WholeNumber<std::int64_t>(text);
  return step >= 0 ? step : std::nullopt;
}

bool IsJob(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789_+") == std::string::npos;
}

// What every command for a training has, which then are followed by those of its own.
std::vector<Option> WithWhere(Options& options, std::vector<Option> own) {
  std::vector<Option> rows = {
      Required({"RESULTS_DIR", &options.results_dir, "", "The --results_dir of the training"}),
      Checked({"--job", &options.job, "JOB",
               "Slurm's number of the job that the training is in, where the training does not "
               "know it itself"},
              Needs("the number of a job", IsJob)),
      OneOf({"--srun", &options.srun, "",
             "Where the training runs on another node: run there by srun --overlap, or never"},
            {"auto", "never"})};
  rows.back().last_counts = true;
  rows.insert(rows.end(), own.begin(), own.end());
  return rows;
}

// Of the commands below `checkpoint`, which ask no training.
Option ModelDir(Options& options) {
  return Required({"DIR", &options.model_dir, "",
                   "The --model_dir of the training, as a rule its --results_dir"});
}

Option Step(Options& options) {
  return {"STEP", &options.step_text, "", "The checkpoint of this step"};
}

support::Command ListCommand(Options& options) {
  return MakeCommand(options.command, Command::kListCheckpoints, "list",
                     "Show the checkpoints that are there: step, epochs, size, when they were "
                     "written, network, version, and whether they look whole",
                     {ModelDir(options)});
}

support::Command VerifyCommand(Options& options) {
  const auto is_step = [](const std::string& text) { return StepOf(text).has_value(); };
  support::Command command = MakeCommand(
      options.command, Command::kVerifyCheckpoints, "verify",
      "Read all of every checkpoint, or of one, and compare all checksums",
      {ModelDir(options), Checked(Step(options), Needs("the number of a step", is_step))});
  command.finish = [&options] {
    options.step = StepOf(options.step_text);
    return "";
  };
  return command;
}

std::string FinishExport(Options& options) {
  // Of one word it is FILE.
  if (options.export_file.empty()) options.export_file.swap(options.step_text);
  if (options.export_file.empty()) return "FILE is required: DIR [STEP] FILE.safetensors";
  if (!options.export_file.ends_with(kExportEnding)) {
    return "FILE needs a name that ends in .safetensors, not '" + options.export_file + "'";
  }
  options.step = StepOf(options.step_text);
  return options.step || options.step_text.empty()
             ? ""
             : "STEP needs the number of a step, not '" + options.step_text + "'";
}

support::Command ExportCommand(Options& options) {
  support::Command command =
      MakeCommand(options.command, Command::kExportCheckpoint, "export",
                  "Write the weights of the newest valid checkpoint, or of one, to a new file: "
                  "safetensors with torchvision's names, as ddltraind --export_dir",
                  {ModelDir(options),
                   Step(options),
                   {"FILE", &options.export_file, "", "The new file, *.safetensors"}});
  command.finish = [&options] { return FinishExport(options); };
  return command;
}

// For one of the orders, with what all of them have, and then `own`.
support::Command SubmitCommand(Options& options, ControlCommand requested, const std::string& help,
                               std::vector<Option> own) {
  support::Command command =
      MakeCommand(options.command, Command::kOrder, std::string(trainer::NameOf(requested)), help,
                  WithWhere(options, std::move(own)));
  command.finish = [&options, requested] {
    options.request.command = requested;
    options.request.display_every = DisplayEvery(options.setting).value_or(0);
    return options.results_dir.empty() ? "RESULTS_DIR is required" : "";
  };
  return command;
}

support::Command WaitedFor(Options& options, ControlCommand requested, const std::string& help) {
  return SubmitCommand(
      options, requested, help,
      {{"--no-wait", &options.no_wait, "",
        "End as soon as the training has taken the order, not when it is obeyed"}});
}

support::Command CheckpointCommand(Options& options) {
  support::Command command = WaitedFor(options, ControlCommand::kCheckpoint,
                                       "Have a checkpoint written after the step under way; or "
                                       "look at those that are there: list, verify, export");
  command.options.front().is_required = false;  // of the commands below
  command.commands = {ListCommand(options), VerifyCommand(options), ExportCommand(options)};
  return command;
}

support::Command SetCommand(Options& options) {
  const auto is_setting = [](const std::string& text) { return DisplayEvery(text).has_value(); };
  support::Command command =
      SubmitCommand(options, ControlCommand::kSet, "Change a setting from the next step on", {});
  command.options.insert(
      command.options.begin(),
      Required(Checked({"SETTING", &options.setting, "", "display_every=N: steps, from 1"},
                       Needs("display_every=N, N from 1", is_setting))));
  return command;
}

support::Command StatusCommand(Options& options) {
  return MakeCommand(
      options.command, Command::kStatus, "status",
      "Say what the training does, or how it has ended; or what ddlrun knows of a job with any "
      "program, by its number or run directory",
      WithWhere(options, {{"--json", &options.as_json, "", "As JSON, in one line"}}));
}

support::Command WatchCommand(Options& options) {
  const auto fits = [](double x) { return x >= 0.1 && x <= 3600 && std::isfinite(x); };
  return MakeCommand(
      options.command, Command::kWatch, "watch",
      "Show what the training does until it ends: on a terminal a view, redrawn in place, else a "
      "line from time to time",
      WithWhere(options, {WithDefault(Checked({"--interval", &options.interval, "SECONDS",
                                               "Between two looks; 1 on a terminal, else 10"},
                                              support::NeedsNumber("0.1 to 3600 seconds", fits)),
                                      "")}));
}

support::Command StacksCommand(Options& options) {
  return MakeCommand(
      options.command, Command::kStacks, "stacks",
      "Show where every rank is right now, function by function, also while ranks hang: first "
      "those that do not answer or are alone in what they do",
      WithWhere(options,
                {{"--all-threads", &options.all_threads, "",
                  "All threads of every rank, not only the main one of each group of ranks"}}));
}

support::Command WhyCommand(Options& options) {
  Option srun = OneOf(
      {"--srun", &options.srun, "", "Look at the other nodes of a job by srun --overlap, or never"},
      {"auto", "never"});
  srun.last_counts = true;
  return MakeCommand(
      options.command, Command::kWhy, "why",
      "Say in a line which rank of a job of ddlrun hangs, and why, whatever its program: looks at "
      "the processes of all ranks without stopping them",
      {Required({"JOB", &options.results_dir, "",
                 "The job in Slurm; or the run directory of ddlrun, which ranks on its "
                 "node have in DDLRUN_RUN_DIR"}),
       {"-v,--verbose", &options.is_verbose, "", "A row for each rank, too"},
       {"--json", &options.as_json, "", "The same, and all that was seen, as JSON in one line"},
       std::move(srun),
       {"--facts", &options.facts_only, "",
        "What is seen on this node alone, for the ddlctl that has started this one"}});
}

support::Command HistoryCommand(Options& options) {
  return MakeCommand(
      options.command, Command::kHistory, "history",
      "Show what the launches of a job have cost, over requeues, whatever its program: how much "
      "time was productive, and how much failures have cost, by cause",
      {Required({"DIR", &options.results_dir, "",
                 "The --log-dir of ddlrun, or its --metrics-dir where that is not given"}),
       {"--json", &options.as_json, "", "As JSON, in one line"}});
}

support::Command AttachCommand(Options& options) {
  Option srun =
      OneOf({"--srun", &options.srun, "", "Reach another node by srun --overlap, or never"},
            {"auto", "never"});
  srun.last_counts = true;
  return MakeCommand(
      options.command, Command::kAttach, "attach",
      "Run COMMAND, or a shell, beside a rank of a job of ddlrun: on its node, in its environment "
      "and working directory; {pid} and {rank} in COMMAND are those of the rank",
      {Required({"JOB", &options.results_dir, "",
                 "The job in Slurm; or the run directory of ddlrun, which ranks on its "
                 "node have in DDLRUN_RUN_DIR"}),
       Required({"RANK", &options.rank, "N", "The rank"}),
       {"COMMAND", &options.program, "ARG", "And its arguments: gdb -p {pid}"},
       std::move(srun),
       {"--here", &options.facts_only, "",
        "On this node alone, for the ddlctl that has started this one"}});
}

}  // namespace

std::vector<std::string> TakeProgram(std::vector<std::string>* arguments) {
  if (arguments->empty() || arguments->front() != "attach") return {};
  int operands = 0;
  for (auto word = arguments->begin() + 1; word != arguments->end(); ++word) {
    if (*word == "--srun" && word + 1 != arguments->end()) {
      ++word;
    } else if (!word->starts_with("-") && ++operands == 2) {
      std::vector<std::string> program(word + 1, arguments->end());
      arguments->erase(word + 1, arguments->end());
      if (!program.empty() && program.front() == "--") program.erase(program.begin());
      return program;
    }
  }
  return {};
}

support::Program DescribeOptions(Options& options) {
  support::Program program = {.version = support::VersionText(support::Part::kLauncher),
                              .version_help = support::kVersionHelp,
                              .footer = support::HelpFooter()};
  program.root = {.name = "ddlctl",
                  .help = "Sees and asks a training of ddltraind, or a job of ddlrun, that runs."};
  program.root.commands = {
      StatusCommand(options),
      WatchCommand(options),
      WaitedFor(options, ControlCommand::kPause,
                "Let all ranks rest after the step under way; they keep their memory"),
      WaitedFor(options, ControlCommand::kResume, "Resume a paused training"),
      CheckpointCommand(options),
      WaitedFor(options, ControlCommand::kEvaluate,
                "Evaluate the weights after the current step; training then continues"),
      WaitedFor(options, ControlCommand::kStop,
                "Have a checkpoint written and the training end, with 75"),
      SetCommand(options),
      StacksCommand(options),
      WhyCommand(options),
      HistoryCommand(options),
      AttachCommand(options)};
  return program;
}

}  // namespace ddlctl
