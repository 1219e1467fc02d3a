// SPDX-License-Identifier: Apache-2.0
//
// ddlrun: Allocation -> Topology -> Plan -> Job.  Reads the command line, the environment and the
// site file, plans, starts the ranks and waits for them.  Called as bede-mpirun it is that program.

#include <sysexits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/bede_mpirun_main.h"
#include "launcher/environment.h"
#include "launcher/error.h"
#include "launcher/health/health_check.h"
#include "launcher/launch.h"
#include "launcher/messages.h"
#include "launcher/options.h"
#include "launcher/plan/plan_files.h"
#include "launcher/restarts.h"
#include "launcher/say.h"
#include "launcher/settings.h"
#include "launcher/shim/run_program.h"
#include "launcher/slurm_job.h"
#include "launcher/spawn/run_directory.h"
#include "launcher/supervise/command_output.h"
#include "launcher/supervise/supervisor.h"
#include "launcher/surroundings.h"
#include "support/counted.h"

namespace launcher {
namespace {

void FillRunDirectory(const RunDirectory& directory, const PlannedJob& planned,
                      const Settings& settings, const std::string& announcement) {
  for (const auto& [name, text] : FilesOf(planned)) directory.Append(name, text);
  directory.Append("ddlrun.log", SettingsText(settings) + PlanAsText(planned.plan) + announcement);
}

// What is said before the ranks start.
std::string Announcement(const Options& options, const PlannedJob& planned,
                         const Settings& settings, const Launch& launch, bool is_root) {
  std::vector<std::string> warnings = planned.plan.warnings;
  if (launch.choice.name == "mpirun") {
    warnings.insert(warnings.begin(), settings.warnings.begin(), settings.warnings.end());
  } else if (!options.mpi_arguments.empty()) {
    warnings.push_back(
        Coded(Message::kArgumentNotUsed, "--mpiarg is not used by the " + launch.choice.name +
                                             " launcher; --launcher=mpirun uses it"));
  }
  if (!options.pmi.empty() && launch.choice.name != "srun") {
    warnings.push_back(Coded(Message::kArgumentNotUsed,
                             "--pmi is not used by the " + launch.choice.name +
                                 " launcher; it is for ranks that srun starts inside Slurm"));
  }
  std::string text;
  for (const std::string& warning : warnings) text += "ddlrun: " + warning + "\n";
  if (!launch.choice.reason.empty()) {
    text += "ddlrun: starting " +
            support::Counted(static_cast<long long>(planned.plan.ranks.size()), "rank") +
            " with the " + launch.choice.name + " launcher: " + launch.choice.reason + "\n";
  }
  if (is_root && launch.choice.name == "mpirun") {
    text += "ddlrun: started by root, so mpirun gets --allow-run-as-root\n";
  }
  return text;
}

// As IBM's ddlrun says it.
std::string WhereTheLogIs(const RunDirectory& directory) {
  return "Please see " + directory.path() + "/ddlrun.log for detailed log.\n";
}

std::string ResultText(const JobResult& result, const Decision& decision) {
  if (result.exit_code == 0) return "";
  if (result.exit_code == EX_TEMPFAIL) {
    const bool is_requeued = decision.next == Decision::Next::kRequeue;
    return std::string("ddlrun: stopped early with a checkpoint written (exit code 75)") +
           (is_requeued ? "\n" : ": start it again\n");
  }
  if (!result.lost_nodes.empty()) {
    return "ddlrun: " + Coded(Message::kJobFailed,
                              "the job failed: node " + result.lost_nodes[0] + " was lost\n");
  }
  if (result.failure) return FailureReport(*result.failure);
  if (!result.launcher_end.empty()) {
    return "ddlrun: " +
           Coded(Message::kJobFailed,
                 "the job failed: " + result.launcher_end +
                     ", which is not ddlrun's doing; the ranks were well until then") +
           "\n";
  }
  return "ddlrun: " +
         Coded(Message::kJobFailed, "the job failed with exit code " +
                                        std::to_string(result.exit_code) +
                                        "; the messages above say why") +
         "\n";
}

// What is said at the end of a run: the cause of a failure last, unless it goes on.
std::string EndText(const JobResult& result, const Decision& decision) {
  const std::string text = ResultText(result, decision);
  if (decision.reason.empty()) return text;
  const std::string reason = "ddlrun: " + decision.reason + "\n";
  return decision.next == Decision::Next::kEnd ? reason + text : text + reason;
}

// What all runs of the ranks share.
struct Command {
  const Options& options;
  const Settings& settings;
  const Environment& environment;
  std::string program_directory;
};

struct RunResult {
  int exit_code = EX_OK;
  bool start_again = false;
};

JobResult StartAndWait(const Command& command, const PlannedJob& planned,
                       const std::vector<ChildCommand>& commands, Guardian& guardian,
                       SignalRelay& signals) {
  SupervisorOptions supervisor;
  supervisor.guardian = &guardian;
  supervisor.grace = command.settings.grace;
  supervisor.tag_output = command.options.tag_output;
  supervisor.log_directory = command.options.log_directory;
  supervisor.stop_signal_of_mpirun = kStopSignalOfMpirun;
  std::set<int> components;
  for (const RankPlan& rank : planned.plan.ranks) {
    const NodePlan& node = planned.plan.nodes[static_cast<std::size_t>(rank.node)];
    supervisor.hosts.push_back(node.host);
    components.insert(node.component);
  }
  std::vector<std::unique_ptr<CommandOutput>> scancels;
  supervisor.signal_step = [&](const std::string& step, int signal) {
    const std::string scancel = FindProgram("scancel", command.environment);
    if (scancel.empty()) return;
    std::vector<std::string> words = {scancel, "--signal=" + std::to_string(signal)};
    for (std::string& name : StepsOfComponents(step, components, command.environment)) {
      words.push_back(std::move(name));
    }
    scancels.push_back(std::make_unique<CommandOutput>(words, command.environment));
  };
  return Supervise(commands, supervisor, signals);
}

// The ranks once, in a run directory of their own.
RunResult RunOnce(const Command& command, const PlannedJob& planned, const Launch& launch,
                  Restarts& restarts, SignalRelay& signals) {
  const Options& options = command.options;
  const Settings& settings = command.settings;
  const RunDirectory directory(settings.run_directory, !options.run_directory.empty());
  const std::vector<ChildCommand> commands =
      MakeCommands(options, settings, planned, launch, command.environment, directory.path(),
                   command.program_directory);
  const std::string announcement =
      Announcement(options, planned, settings, launch, geteuid() == 0) + CommandsText(commands);
  FillRunDirectory(directory, planned, settings, announcement);
  if (options.verbose) Say(SettingsText(settings) + PlanAsText(planned.plan));
  if (!options.run_directory.empty()) Say(WhereTheLogIs(directory));
  Guardian guardian(options.run_directory.empty() ? directory.path() : "");
  if (options.check_only || settings.check == "full") {
    Say(CheckAnnouncement(planned.plan));
    const HealthReport report =
        CheckHealth({options, settings, planned, launch, command.environment,
                     command.program_directory, directory, signals, guardian});
    directory.Append("ddlrun.log", report.commands + report.table + report.messages);
    Say(report.commands);
    (options.check_only ? Print : Say)(report.table);
    Say(report.messages);
    if (options.check_only || report.exit_code != EX_OK) return {report.exit_code, false};
  }
  Say(announcement);

  restarts.BeforeRun();
  const JobResult result = StartAndWait(command, planned, commands, guardian, signals);
  const Decision decision = restarts.AfterRun(result);
  const std::string text = EndText(result, decision);
  directory.Append("ddlrun.log", text + "exit code " + std::to_string(result.exit_code) + "\n");
  Say(text);
  return {result.exit_code, decision.next == Decision::Next::kStartAgain};
}

// Whether a signal came while no rank ran.
bool IsToldToStop(SignalRelay& signals) {
  while (const std::optional<int> number = signals.Next()) {
    if (*number != SIGCHLD && *number != SIGCONT) return true;
  }
  return false;
}

int PlanAndLaunch(const Options& options, const Settings& settings,
                  const Environment& environment) {
  const Command command = {options, settings, environment, ProgramDirectory()};
  const SrunQuestions questions = AskSrun(options, settings, environment);
  std::unique_ptr<CommandOutput> mpirun_version = AskMpirunEarly(options, settings, environment);
  PlannedJob planned = PlanJob(options, settings, environment, {});
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
                                    settings.run_directory + "/ddlrun.XXXXXX",
                                    command.program_directory)));
    return EX_OK;
  }

  if (!options.log_directory.empty()) MakeDirectory(options.log_directory);
  SignalRelay signals;  // before the run directory, so that no signal leaves it behind
  Restarts restarts(options, environment);
  for (;;) {
    planned.restart_count = restarts.count();
    const RunResult run = RunOnce(command, planned, launch, restarts, signals);
    if (!run.start_again || IsToldToStop(signals)) return run.exit_code;
    planned = PlanJob(options, settings, environment, restarts.lost_nodes());
  }
}

int Run(const std::vector<std::string>& arguments) {
  const Options options = ParseOptions(arguments);
  if (options.help) {
    Print(HelpText());
    return EX_OK;
  }
  if (options.version) {
    Print(std::string("ddlrun ") + DDLRUN_VERSION + "\n");
    return EX_OK;
  }
  const Environment environment = SnapshotEnvironment();
  // hwloc would load its plug-ins for libxml2, OpenCL and X11, and a live machine needs none of
  // them.  What ddlrun starts gets `environment`.
  if (options.topology.empty()) setenv("HWLOC_PLUGINS_PATH", "/dev/null", 0);
  const Settings settings =
      MergeSettings(options, LoadSite(options.site, environment), environment);
  if (options.show_config) {
    Print(SettingsText(settings));
    return EX_OK;
  }
  if (options.program.empty() && options.dry_run == DryRun::kNo && !options.check_only) {
    throw LaunchError(EX_USAGE, "no program given: ddlrun [options] program [arguments]");
  }
  return PlanAndLaunch(options, settings, environment);
}

}  // namespace
}  // namespace launcher

int main(int argc, char** argv) {
  launcher::OpenStandardStreams();
  const std::string called = argc > 0 ? argv[0] : "";
  const bool is_bede_mpirun = called.substr(called.rfind('/') + 1) == "bede-mpirun";
  const char* name = is_bede_mpirun ? "bede-mpirun" : "ddlrun";
  try {
    const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
    return is_bede_mpirun ? launcher::RunBedeMpirun(arguments) : launcher::Run(arguments);
  } catch (const launcher::LaunchError& error) {
    std::fprintf(stderr, "%s: %s\n", name, launcher::CodedError(error).c_str());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, launcher::CodedUnexpected(error.what()).c_str());
    return EX_SOFTWARE;
  }
}
