// SPDX-License-Identifier: Apache-2.0

#include "launcher/ddlrun/one_run.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "launcher/base/error.h"
#include "launcher/base/messages.h"
#include "launcher/ddlrun/run_messages.h"
#include "launcher/health/health_check.h"
#include "launcher/pipeline/commands.h"
#include "launcher/placement/launch_plan_files.h"
#include "launcher/slurm/slurm_job.h"
#include "launcher/supervise/supervisor.h"
#include "launcher/system/output_queue.h"
#include "launcher/system/run_directory.h"
#include "support/quoting.h"

namespace launcher {
namespace {

void FillRunDirectory(const RunDirectory& directory, const PlannedJob& planned,
                      const Settings& settings, const std::string& announcement) {
  for (const auto& [name, text] : FilesOf(planned)) directory.Append(name, text);
  directory.Append(kRunLogName, SettingsText(settings) + PlanAsText(planned.plan) + announcement);
}

JobResult StartAndWait(const Invocation& invocation, const PlannedJob& planned,
                       const std::vector<ChildCommand>& commands, const StatusFileOptions& status,
                       CleanupProcess& cleanup_process, SignalRelay& signals) {
  SupervisorOptions supervisor;
  supervisor.cleanup_process = &cleanup_process;
  supervisor.grace = invocation.settings.grace;
  supervisor.start_limit = invocation.settings.start;
  supervisor.end_limit = invocation.settings.end;
  supervisor.heartbeat = {.pattern = invocation.settings.heartbeat,
                          .limit = invocation.settings.hang_after,
                          .ranks = static_cast<int>(planned.plan.ranks.size())};
  supervisor.status_file = status;
  supervisor.time_limit = invocation.time_limit;
  supervisor.tag_output = invocation.options.tag_output;
  supervisor.log_directory = invocation.options.log_directory;
  supervisor.event_key = commands.front().event_key;
  std::set<int> components;
  for (const RankPlacement& rank : planned.plan.ranks) {
    const NodePlacement& node = planned.plan.nodes[static_cast<std::size_t>(rank.node)];
    supervisor.hosts.push_back(node.host);
    components.insert(node.component);
  }
  supervisor.step_tools.environment = WithoutDefaultsOfSlurmTools(invocation.environment);
  supervisor.step_tools.signal = [&](const std::string& step, int signal) {
    return SignalStepCommand(StepsOfComponents(step, components, invocation.environment), signal,
                             invocation.environment);
  };
  supervisor.step_tools.list = [&](const std::string& step) {
    return ListStepsCommand(StepsOfComponents(step, components, invocation.environment),
                            invocation.environment);
  };
  if (!planned.job_id.empty()) {
    supervisor.nodes_of_job.question = ShowJobCommand(invocation.environment);
    supervisor.nodes_of_job.environment = supervisor.step_tools.environment;
    supervisor.nodes_of_job.rejection = [&](const std::string& text) {
      const auto job = ParseSlurmJob(text, SlurmJobNumber(invocation.environment));
      return job ? RejectionOfHosts(*job, supervisor.hosts) : "";
    };
  }
  return Supervise(commands, supervisor, signals);
}

// A node of the plan that was not silent; "" where all were.
std::string AnotherNode(const LaunchPlan& plan, const std::vector<std::string>& silent) {
  const auto other =
      std::find_if(plan.nodes.begin(), plan.nodes.end(), [&](const NodePlacement& node) {
        return std::find(silent.begin(), silent.end(), node.host) == silent.end();
      });
  return other == plan.nodes.end() ? "" : other->host;
}

// Looks whether nodes are gone that were silent when the job failed, since the ranks on other nodes
// notice that long before Slurm does.
void LookForLostNodes(const LaunchPlan& plan, const Launch& launch, const Environment& environment,
                      JobResult* result) {
  const bool may_be = result->exit_code != EX_OK && result->exit_code != EX_TEMPFAIL &&
                      !result->stop_requested && !result->cancelled && result->lost_nodes.empty();
  if (!may_be) return;
  const std::vector<std::string>& silent = result->silent_nodes;
  if (silent.empty()) return;
  result->lost_nodes = NodesThatDoNotAnswer(silent, AnotherNode(plan, silent), launch.srun,
                                            environment, std::chrono::seconds(20));
  for (const std::string& host : result->lost_nodes) {
    result->notes.push_back("no rank has responded on " + host +
                            " any more, and a step of srun does not run there either");
  }
}

// The nodes of the Slurm job that are planned; none outside it.
std::vector<std::string> PlannedHostsOfJob(const PlannedJob& planned) {
  std::vector<std::string> hosts;
  for (const NodePlacement& node : planned.plan.nodes) hosts.push_back(node.host);
  if (planned.job_id.empty()) hosts.clear();
  return hosts;
}

// Before the check of all nodes, which would wait in vain.  Whether the job has lost planned nodes,
// which are left out now.  Throws LaunchError where they cannot be.
bool LeavesOutLostHosts(const PlannedJob& planned, const Environment& environment, bool may_leave,
                        Restarts& restarts) {
  if (planned.job_id.empty()) return false;
  const std::vector<std::string> hosts = PlannedHostsOfJob(planned);
  const std::optional<SlurmJob> job = QuerySlurmForJob(environment);
  const std::string rejection = job ? RejectionOfHosts(*job, hosts) : "";
  if (rejection.empty()) return false;
  std::vector<std::string> lost;
  const std::set<std::string> left(job->nodes.begin(), job->nodes.end());
  std::copy_if(hosts.begin(), hosts.end(), std::back_inserter(lost),
               [&left](const std::string& host) { return !left.contains(host); });
  if (!may_leave || !restarts.LeaveOut(lost)) throw LaunchError(EX_CONFIG, rejection);
  for (const std::string& host : lost) {
    Say("ddlrun: " + Coded(Message::kNodeLeftOut, host + " is left out: the job no longer has it") +
        "\n");
  }
  return true;
}

// Checks all nodes, and tells the user what was found.  nullopt when the ranks may start.
std::optional<RunResult> LookAtNodes(const Invocation& invocation, const PlannedJob& planned,
                                     const Launch& launch, const RunDirectory& directory,
                                     Restarts& restarts, SignalRelay& signals,
                                     CleanupProcess& cleanup_process) {
  const bool is_all = invocation.options.check_only;
  if (LeavesOutLostHosts(planned, invocation.environment, !is_all, restarts)) {
    return RunResult{EX_CONFIG, true};
  }
  Say(CheckAnnouncement(planned.plan));
  const HealthCheckResult report =
      CheckHealth({invocation.options, invocation.settings, planned, launch, invocation.environment,
                   invocation.program_directory, directory, signals, cleanup_process});
  std::vector<std::string> bad_hosts;
  std::string last_lines;
  for (const BadNode& node : report.bad_nodes) {
    bad_hosts.push_back(node.host);
    last_lines +=
        "ddlrun: " + Coded(Message::kNodeLeftOut, node.host + " is left out: " + node.reason) +
        "\n";
  }
  const bool continues = !is_all && !bad_hosts.empty() && restarts.LeaveOut(bad_hosts);
  last_lines = continues ? last_lines + "ddlrun: checking again, without them\n" : report.rejection;
  directory.Append(kRunLogName, report.commands + report.table + report.messages + last_lines);
  const bool is_stop_requested = report.exit_code > 128;
  Say(report.commands, is_stop_requested);
  if (is_all) {
    Print(report.table);
  } else {
    Say(report.table, is_stop_requested);
  }
  Say(report.messages + last_lines, is_stop_requested);
  if (!is_all && report.exit_code == EX_OK) return std::nullopt;
  return RunResult{report.exit_code, continues};
}

}  // namespace

RunResult RunOnce(const Invocation& invocation, const PlannedJob& planned, const Launch& launch,
                  Restarts& restarts, SignalRelay& signals) {
  const Options& options = invocation.options;
  const Settings& settings = invocation.settings;
  const RunDirectory directory(settings.run_directory, !options.run_directory.empty());
  const std::vector<ChildCommand> commands =
      MakeCommands(options, settings, planned, launch, invocation.environment, directory.path(),
                   invocation.program_directory);
  const std::string announcement =
      Announcement(options, planned, settings, launch, geteuid() == 0) + CommandsText(commands);
  FillRunDirectory(directory, planned, settings, announcement);
  if (options.verbose) Say(SettingsText(settings) + PlanAsText(planned.plan));
  if (!options.run_directory.empty()) Say(WhereTheLogIs(directory.path()));
  CleanupProcess cleanup_process(options.run_directory.empty() ? directory.path() : "");
  if (options.check_only || settings.check == "full") {
    const std::optional<RunResult> end =
        LookAtNodes(invocation, planned, launch, directory, restarts, signals, cleanup_process);
    if (end) return *end;
  }
  Say(announcement);

  restarts.BeforeRun(PlannedHostsOfJob(planned));
  JobResult result = StartAndWait(
      invocation, planned, commands,
      {directory.path() + "/" + kStatusFileName, StatusAtStart(invocation, planned, launch)},
      cleanup_process, signals);
  invocation.time_limit.end = result.time_limit;
  LookForLostNodes(planned.plan, launch, invocation.environment, &result);
  const Decision decision = restarts.AfterRun(result);
  const std::string text = EndText(result, decision);
  directory.Append(kRunLogName, text + "exit code " + std::to_string(result.exit_code) + "\n");
  Say(text, result.stop_requested);
  return {result.exit_code, decision.next == Decision::Next::kRestart, result.step_is_left,
          decision.pause};
}

JobStatus StatusAtStart(const Invocation& invocation, const PlannedJob& planned,
                        const Launch& launch) {
  const auto now = std::chrono::system_clock::now();
  JobStatus status;
  status.job = SlurmJobNumber(invocation.environment);
  std::array<char, 256> host = {};
  gethostname(host.data(), host.size() - 1);
  status.host = host.data();
  status.pid = static_cast<int>(getpid());
  status.launcher = launch.choice.name;
  status.restarts = planned.restart_count;
  status.program = support::QuoteCommand(invocation.options.program);
  status.started = std::chrono::duration<double>(now.time_since_epoch()).count();
  const TimeLimitWatcherOptions& end = invocation.time_limit;
  if (end.end) {
    const std::chrono::duration<double> left = *end.end - TimeLimitWatcher::Clock::now();
    status.ends = status.started + left.count();
  } else if (invocation.environment.contains("SLURM_JOB_END_TIME")) {
    const auto left = SecondsToTimeLimit(invocation.environment, now);
    if (left && *left > 0) status.ends = status.started + *left;
  }
  for (const RankPlacement& rank : planned.plan.ranks) {
    status.ranks.emplace_back().host = planned.plan.nodes[static_cast<std::size_t>(rank.node)].host;
  }
  return status;
}

TimeLimitWatcherOptions StopInTime(const Settings& settings, const Environment& environment) {
  using Clock = TimeLimitWatcher::Clock;
  TimeLimitWatcherOptions options;
  if (settings.stop_before.count() == 0) return options;
  const std::string option = "--stop-before " + std::to_string(settings.stop_before.count());
  const auto margin = static_cast<double>(settings.stop_before.count());
  std::optional<double> left = SecondsToTimeLimit(environment, std::chrono::system_clock::now());
  // SLURM_JOB_END_TIME is that of the job's start; the limit may have been extended since.
  if (left && *left <= margin && !SlurmJobNumber(environment).empty()) {
    if (const auto job = QuerySlurmForJob(environment)) left = job->seconds_left;
  }
  if (!left) {
    throw LaunchError(EX_CONFIG,
                      option +
                          ": the end of this job is not known: neither SLURM_JOB_END_TIME nor "
                          "'scontrol show job' tells a time limit; write #SBATCH --time, or leave "
                          "the option out");
  }
  if (*left <= margin) {
    throw LaunchError(EX_CONFIG, option + ": the job's time ends in " +
                                     std::to_string(std::max(0LL, static_cast<long long>(*left))) +
                                     " s already: give fewer seconds, or more #SBATCH --time");
  }
  options.end = Clock::now() +
                std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*left));
  options.margin = settings.stop_before;
  options.signal = settings.stop_before_signal;
  options.question = ShowJobCommand(environment);
  options.environment = environment;
  const std::string number = SlurmJobNumber(environment);
  options.seconds_left = [number](const std::string& text) -> std::optional<double> {
    const std::optional<SlurmJob> job = ParseSlurmJob(text, number);
    if (!job) return std::nullopt;
    return job->seconds_left.value_or(std::numeric_limits<double>::infinity());
  };
  return options;
}

}  // namespace launcher
