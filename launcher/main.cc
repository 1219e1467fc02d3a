// SPDX-License-Identifier: Apache-2.0
//
// ddlrun: Allocation -> Topology -> Plan -> Job.  Reads the command line, the environment and the
// site file, plans, starts the ranks and waits for them.  Called as bede-mpirun it is that program.

#include <poll.h>
#include <sysexits.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/base/error.h"
#include "launcher/base/messages.h"
#include "launcher/bede_mpirun_main.h"
#include "launcher/cli/options.h"
#include "launcher/cli/settings.h"
#include "launcher/cli/site_config.h"
#include "launcher/health/health_check.h"
#include "launcher/pipeline/commands.h"
#include "launcher/pipeline/launch.h"
#include "launcher/plan/plan_files.h"
#include "launcher/restart/node_probe.h"
#include "launcher/restart/restarts.h"
#include "launcher/shim/run_program.h"
#include "launcher/shim/standard_streams.h"
#include "launcher/slurm/slurm_job.h"
#include "launcher/supervise/supervisor.h"
#include "launcher/system/command_output.h"
#include "launcher/system/files.h"
#include "launcher/system/programs.h"
#include "launcher/system/run_directory.h"
#include "launcher/system/say.h"
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

std::string Failed(const std::string& text) {
  return "ddlrun: " + Coded(Message::kJobFailed, "the job failed: " + text) + "\n";
}

std::string InLowerCase(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(letter));
  return text;
}

// The end of a job that was told to end; a rank is not the cause, but what it said may matter.
std::string StoppedText(const JobResult& result, const std::string& how) {
  std::string text;
  const bool is_of_the_signal =
      !result.failure || result.failure->signal != 0 || result.failure->exit_code > 128;
  if (!is_of_the_signal) {
    text = "ddlrun: rank " + std::to_string(result.failure->rank) + " on " + result.failure->host +
           " ended with " + DescribeEnd(*result.failure) + " after that\n";
  }
  return text + "ddlrun: " + how + " (exit code " + std::to_string(result.exit_code) + ")\n";
}

std::string StartThatHung(const JobResult& result) {
  constexpr std::size_t kMostNames = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(result.not_started.size(), kMostNames); ++i) {
    names += (i == 0 ? "" : ", ") + result.not_started[i];
  }
  if (result.not_started.size() > kMostNames) names += ", ...";
  return "its start hung: on " + names +
         " not all programs ran when the time for that was over (start_seconds of the site file)";
}

std::string ResultText(const JobResult& result, const Decision& decision) {
  if (result.exit_code == 0) return "";
  if (result.exit_code == EX_TEMPFAIL) {
    const bool is_requeued = decision.next == Decision::Next::kRequeue;
    return std::string("ddlrun: stopped early with a checkpoint written (exit code 75)") +
           (is_requeued ? "\n" : ": start it again\n");
  }
  // Slurm calls a step cancelled, too, to which ddlrun has passed SIGTERM on.
  if (result.cancelled && (result.stop_signal == 0 || !result.cancelled->empty())) {
    return StoppedText(result, "cancelled by Slurm" + InLowerCase(*result.cancelled));
  }
  if (result.stop_signal != 0) {
    return StoppedText(result, std::string("stopped by ") + NameOfOrderToStop(result.stop_signal));
  }
  if (result.output_is_closed) {
    return "ddlrun: nobody reads the output any more, so the job was ended (exit code " +
           std::to_string(result.exit_code) + ")\n";
  }
  if (!result.not_started.empty()) return Failed(StartThatHung(result));
  if (!result.lost_nodes.empty()) return Failed("node " + result.lost_nodes[0] + " was lost");
  if (result.failure) return FailureReport(*result.failure);
  if (!result.launcher_end.empty()) {
    return Failed(result.launcher_end +
                  ", which is not ddlrun's doing; the ranks were well until then");
  }
  return "ddlrun: " +
         Coded(Message::kJobFailed, "the job failed with exit code " +
                                        std::to_string(result.exit_code) +
                                        "; the messages above say why") +
         "\n";
}

// What is said at the end of a run: the cause of a failure last, unless it goes on.
std::string EndText(const JobResult& result, const Decision& decision) {
  std::string text;
  for (const std::string& note : result.notes) text += "ddlrun: " + note + "\n";
  text += ResultText(result, decision);
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
  bool step_is_left = false;
  int pause = 0;  // seconds, before the next start
};

JobResult StartAndWait(const Command& command, const PlannedJob& planned,
                       const std::vector<ChildCommand>& commands, Guardian& guardian,
                       SignalRelay& signals) {
  SupervisorOptions supervisor;
  supervisor.guardian = &guardian;
  supervisor.grace = command.settings.grace;
  supervisor.start_limit = command.settings.start;
  supervisor.tag_output = command.options.tag_output;
  supervisor.log_directory = command.options.log_directory;
  supervisor.report_key = commands.front().report_key;
  supervisor.stop_signal_of_mpirun = kStopSignalOfMpirun;
  std::set<int> components;
  for (const RankPlan& rank : planned.plan.ranks) {
    const NodePlan& node = planned.plan.nodes[static_cast<std::size_t>(rank.node)];
    supervisor.hosts.push_back(node.host);
    components.insert(node.component);
  }
  supervisor.step_tools.environment = command.environment;
  supervisor.step_tools.signal = [&](const std::string& step, int signal) {
    return SignalStepCommand(StepsOfComponents(step, components, command.environment), signal,
                             command.environment);
  };
  supervisor.step_tools.list = [&](const std::string& step) {
    return ListStepsCommand(StepsOfComponents(step, components, command.environment),
                            command.environment);
  };
  return Supervise(commands, supervisor, signals);
}

// A node of the plan that is none of `silent`; "" where there is none.
std::string AnotherNode(const Plan& plan, const std::vector<std::string>& silent) {
  const auto other = std::find_if(plan.nodes.begin(), plan.nodes.end(), [&](const NodePlan& node) {
    return std::find(silent.begin(), silent.end(), node.host) == silent.end();
  });
  return other == plan.nodes.end() ? "" : other->host;
}

// Other ranks notice the end of a node long before Slurm does.
void LookForLostNodes(const Plan& plan, const Launch& launch, const Environment& environment,
                      JobResult* result) {
  const bool may_be = result->exit_code != EX_OK && result->exit_code != EX_TEMPFAIL &&
                      !result->told_to_stop && !result->cancelled && result->lost_nodes.empty();
  if (!may_be) return;
  const std::vector<std::string>& silent = result->silent_nodes;
  if (silent.empty()) return;
  result->lost_nodes = NodesThatDoNotAnswer(silent, AnotherNode(plan, silent), launch.srun,
                                            environment, std::chrono::seconds(20));
  for (const std::string& host : result->lost_nodes) {
    result->notes.push_back("no rank was heard of on " + host +
                            " any more, and a step of srun does not run there either");
  }
}

// Says what the check of all nodes has found.  nullopt when the ranks may start.
std::optional<RunResult> LookAtNodes(const Command& command, const PlannedJob& planned,
                                     const Launch& launch, const RunDirectory& directory,
                                     Restarts& restarts, SignalRelay& signals, Guardian& guardian) {
  const bool is_all = command.options.check_only;
  Say(CheckAnnouncement(planned.plan));
  const HealthReport report =
      CheckHealth({command.options, command.settings, planned, launch, command.environment,
                   command.program_directory, directory, signals, guardian});
  std::vector<std::string> bad_hosts;
  std::string last_lines;
  for (const BadNode& node : report.bad_nodes) {
    bad_hosts.push_back(node.host);
    last_lines +=
        "ddlrun: " + Coded(Message::kNodeLeftOut, node.host + " is left out: " + node.reason) +
        "\n";
  }
  const bool goes_on = !is_all && !bad_hosts.empty() && restarts.LeaveOut(bad_hosts);
  last_lines = goes_on ? last_lines + "ddlrun: checking again, with spare nodes in their place\n"
                       : report.refusal;
  directory.Append("ddlrun.log", report.commands + report.table + report.messages + last_lines);
  const bool is_told_to_stop = report.exit_code > 128;
  Say(report.commands, is_told_to_stop);
  if (is_all) {
    Print(report.table);
  } else {
    Say(report.table, is_told_to_stop);
  }
  Say(report.messages + last_lines, is_told_to_stop);
  if (!is_all && report.exit_code == EX_OK) return std::nullopt;
  return RunResult{report.exit_code, goes_on};
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
    const std::optional<RunResult> end =
        LookAtNodes(command, planned, launch, directory, restarts, signals, guardian);
    if (end) return *end;
  }
  Say(announcement);

  restarts.BeforeRun();
  JobResult result = StartAndWait(command, planned, commands, guardian, signals);
  LookForLostNodes(planned.plan, launch, command.environment, &result);
  const Decision decision = restarts.AfterRun(result);
  const std::string text = EndText(result, decision);
  directory.Append("ddlrun.log", text + "exit code " + std::to_string(result.exit_code) + "\n");
  Say(text, result.told_to_stop);
  return {result.exit_code, decision.next == Decision::Next::kStartAgain, result.step_is_left,
          decision.pause};
}

// Whether a signal came while no rank ran, or comes within `pause` seconds; says so.
bool IsToldToStop(SignalRelay& signals, int pause) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(pause);
  for (;;) {
    while (const std::optional<int> number = signals.Next()) {
      if (*number == SIGCHLD || *number == SIGCONT) continue;
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
  // Before the run directory, so that no signal leaves it behind.
  SignalRelay& signals = SignalsOfProgram();
  Restarts restarts(options, environment);
  bool step_is_left = false;
  for (;;) {
    planned.restart_count = restarts.count();
    const RunResult run = RunOnce(command, planned, launch, restarts, signals);
    if (!run.start_again || IsToldToStop(signals, run.pause)) return run.exit_code;
    planned = PlanJob(options, settings, environment, restarts.lost_nodes());
    step_is_left = step_is_left || run.step_is_left;
    planned.has_lost_nodes = planned.has_lost_nodes || step_is_left;
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
