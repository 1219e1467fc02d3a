// SPDX-License-Identifier: Apache-2.0

#include "launcher/ddlrun/run_ddlrun.h"

#include <poll.h>
#include <sysexits.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "launcher/advice/advice.h"
#include "launcher/base/environment.h"
#include "launcher/base/error.h"
#include "launcher/cli/options.h"
#include "launcher/cli/settings.h"
#include "launcher/cli/site_config.h"
#include "launcher/cli/user_program.h"
#include "launcher/ddlrun/one_run.h"
#include "launcher/ddlrun/report_site.h"
#include "launcher/ddlrun/tune_site.h"
#include "launcher/features/features.h"
#include "launcher/pipeline/commands.h"
#include "launcher/pipeline/launch.h"
#include "launcher/pipeline/planned_job.h"
#include "launcher/placement/launch_plan.h"
#include "launcher/placement/launch_plan_files.h"
#include "launcher/restart/restarts.h"
#include "launcher/slurm/slurm_job.h"
#include "launcher/system/child_process.h"
#include "launcher/system/files.h"
#include "launcher/system/output_queue.h"
#include "launcher/system/run_directory.h"
#include "launcher/system/signal_relay.h"
#include "support/build.h"

namespace launcher {
namespace {

JobShape ShapeOf(const LaunchPlan& plan) {
  JobShape shape{.nodes = static_cast<int>(plan.nodes.size()),
                 .ranks = static_cast<int>(plan.ranks.size())};
  for (const NodePlacement& node : plan.nodes)
    shape.gpus_per_node = std::max(shape.gpus_per_node, node.gpus);
  return shape;
}

// The table (launcher/advice/advice.h).  Throws LaunchError(EX_USAGE) for another program than
// ddltraind, and as AdviceText does.
std::string Advice(const Options& options, const SiteConfig& site, const LaunchPlan& plan) {
  const std::optional<std::vector<std::string>> arguments = TrainerArguments(options.program);
  if (!arguments) {
    throw LaunchError(EX_USAGE, "--advise knows ddltraind alone, not '" + options.program.front() +
                                    "': ddlrun --advise ddltraind --batch_size=256 ...");
  }
  return AdviceText({.requested = ParseTrainingRequest(*arguments),
                     .job = ShapeOf(plan),
                     .machine = site.machine,
                     .site = site.path,
                     .images_per_s = options.advised_speed.value_or(0)});
}

// The same behind the plan of --dry-run: "" for another program, and where there is no table a line
// that says why.
std::string AdviceForDryRun(const Options& options, const SiteConfig& site,
                            const LaunchPlan& plan) {
  if (!TrainerArguments(options.program)) return "";
  try {
    return "\n" + Advice(options, site, plan);
  } catch (const LaunchError& error) {
    return std::string("\nno prediction: ") + error.what() + "\n";
  }
}

// Waits for `pause` seconds.  True when a signal asks ddlrun to stop meanwhile, or has done so
// since the ranks ended; it then says so.
bool IsStopRequested(SignalRelay& signals, int pause) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(pause);
  for (;;) {
    while (const std::optional<int> number = signals.Next()) {
      if (*number == SIGTSTP) StopAsTerminalWants();
      if (*number == SIGCHLD || *number == SIGCONT || *number == SIGTSTP) continue;
      Say("ddlrun: not started again: signal " + std::to_string(*number) + " (" +
              strsignal(*number) + ") came while no rank ran\n",
          true);
      return true;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    pollfd ready = {signals.fd(), POLLIN, 0};
    poll(&ready, 1, static_cast<int>(left.count()));
  }
}

// Runs the ranks, as often as it takes.  Returns the exit code of ddlrun.
int RunUntilEnd(const Invocation& invocation, PlannedJob planned, const Launch& launch,
                Restarts& restarts, SignalRelay& signals) {
  bool step_is_left = false;
  for (;;) {
    planned.restart_count = restarts.count();
    const RunResult run = RunOnce(invocation, planned, launch, restarts, signals);
    if (!run.start_again || IsStopRequested(signals, run.pause)) return run.exit_code;
    planned = PlanJob(invocation.options, invocation.settings, invocation.environment,
                      restarts.lost_nodes());
    step_is_left = step_is_left || run.step_is_left;
    planned.has_lost_nodes = planned.has_lost_nodes || step_is_left;
  }
}

int PlanAndLaunch(const Options& options, const Settings& settings, const SiteConfig& site,
                  const Environment& of_user, RunRecorder::Clock::time_point begin) {
  if (options.advise) {
    Print(Advice(options, site, PlanJob(options, settings, of_user, {}).plan));
    return EX_OK;
  }
  // ddltraind stops by itself before the end of its job, if it is told when that is.
  const bool wants_end = options.dry_run == DryRun::kNo && TrainerArguments(options.program);
  const Environment environment =
      wants_end ? WithTimeLimit(of_user, std::chrono::system_clock::now()) : of_user;
  Invocation invocation = {options, settings, environment, ProgramDirectory()};
  const SrunQuestions questions = QuerySrun(options, settings, environment);
  std::unique_ptr<CommandOutput> mpirun_version = QueryMpirunEarly(options, settings, environment);
  PlannedJob planned = PlanJob(options, settings, environment, {});
  if (planned.plan.ranks.size() > 1 && ReadsProgramFromStdin(options.program)) {
    throw LaunchError(EX_USAGE,
                      options.program.front() +
                          " would read its program from standard input, which is rank 0's alone: "
                          "the other ranks would run nothing. Write the program to a file");
  }
  if (options.dry_run == DryRun::kJson) {
    Print(PlanAsJson(planned.plan));
    return EX_OK;
  }
  const Launch launch =
      ChooseLaunch(options, settings, planned, environment, questions, std::move(mpirun_version));
  if (options.dry_run == DryRun::kText) {
    Print(PlanAsText(planned.plan));
    if (options.program.empty()) return EX_OK;
    Print(CommandsText(MakeCommands(options, settings, planned, launch, environment,
                                    settings.run_directory + "/" + kRunDirectoryName,
                                    invocation.program_directory)) +
          AdviceForDryRun(options, site, planned.plan));
    return EX_OK;
  }

  if (!options.log_directory.empty()) MakeDirectory(options.log_directory);
  // From here on a signal does not end ddlrun, and so cannot leave a run directory behind.
  SignalRelay& signals = SignalsOfProgram();
  // Only a step can do without a lost node.
  const bool is_step = launch.choice.traits().makes_step;
  Restarts restarts(options, environment, is_step ? planned.dispensable_nodes : 0,
                    is_step ? planned.min_nodes : 0);
  if (options.check_only) {
    return RunUntilEnd(invocation, std::move(planned), launch, restarts, signals);
  }
  RunRecorderOptions recorder_options = RecorderOptionsOf(options, environment);
  if (const std::string file = ProgressFile(options); !file.empty()) {
    recorder_options.progress_time = [file] { return NewestTime(file); };
  }
  RunRecorder recorder(std::move(recorder_options), begin);
  invocation.recorder = &recorder;
  const auto end = [&recorder](int exit_code) {
    const std::string problem = recorder.OnEnd(exit_code);
    if (!problem.empty()) Say("ddlrun: " + problem + "\n");
    return exit_code;
  };
  try {
    return end(RunUntilEnd(invocation, std::move(planned), launch, restarts, signals));
  } catch (const LaunchError& error) {
    end(error.exit_code());
    throw;
  }
}

}  // namespace

int RunDdlrun(const std::vector<std::string>& arguments) {
  const auto begin = RunRecorder::Clock::now();
  const Options options = ParseOptions(arguments);
  if (options.help) {
    Print(HelpText(OptionTable()));
    return EX_OK;
  }
  if (options.version) {
    Print("ddlrun " + support::VersionText(support::Part::kLauncher) + "\n");
    return EX_OK;
  }
  const Environment environment =
      WithoutEnclosingLaunch(WithoutInheritedComponents(SnapshotEnvironment()));
  // hwloc would load its plug-ins for libxml2, OpenCL and X11, and none of them is needed to read
  // this machine.  What ddlrun starts does not get this variable, since it gets `environment`.
  if (options.topology.empty()) setenv("HWLOC_PLUGINS_PATH", "/dev/null", 0);
  if (options.tune) return TuneSite(arguments, options, environment);
  if (options.site_report != OutputFormat::kNone) return ReportSite(options, environment);
  const SiteConfig site = LoadSite(options.site, environment);
  const Settings settings = MergeSettings(options, site, environment);
  if (options.show_config) {
    Print(SettingsText(settings));
    return EX_OK;
  }
  if (options.program.empty() && options.dry_run == DryRun::kNo && !options.check_only) {
    throw LaunchError(EX_USAGE, "no program given: ddlrun [options] program [arguments]");
  }
  return PlanAndLaunch(options, settings, site, environment, begin);
}

}  // namespace launcher
