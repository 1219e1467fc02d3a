// SPDX-License-Identifier: Apache-2.0

#include "launcher/ddlrun/one_run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/base/error.h"
#include "launcher/base/messages.h"
#include "launcher/ddlrun/run_messages.h"
#include "launcher/features/features.h"
#include "launcher/health/health_check.h"
#include "launcher/pipeline/commands.h"
#include "launcher/placement/launch_plan_files.h"
#include "launcher/protocol/rank_list.h"
#include "launcher/shim/energy_meter.h"
#include "launcher/slurm/slurm_job.h"
#include "launcher/supervise/supervisor.h"
#include "launcher/system/output_queue.h"
#include "launcher/system/run_directory.h"
#include "support/file.h"
#include "support/quoting.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxDiagnosisBytes = std::uint64_t{64} << 20;

void FillRunDirectory(const RunDirectory& directory, const PlannedJob& planned,
                      const Settings& settings, const std::string& announcement) {
  for (const auto& [name, text] : FilesOf(planned)) directory.Append(name, text);
  directory.Append(kRunLogName, SettingsText(settings) + PlanAsText(planned.plan) + announcement);
}

// The log is for people: neither the ranks nor restarts nor the exit code depend on it.  What
// cleans /tmp (systemd-tmpfiles, epilogs of jobs on shared nodes) may have taken the directory
// away.
void AddToLog(const RunDirectory& directory, const std::string& text) {
  try {
    directory.Append(kRunLogName, text);
  } catch (const LaunchError& error) {
    Say(std::string("ddlrun: ") + error.what() + "; that log lacks the end of this run\n");
  }
}

// The host of each rank.
std::vector<std::string> HostsOfRanks(const LaunchPlan& plan) {
  std::vector<std::string> hosts;
  for (const RankPlacement& rank : plan.ranks) {
    hosts.push_back(plan.nodes[static_cast<std::size_t>(rank.node)].host);
  }
  return hosts;
}

// Where there is no ddlctl beside ddlrun nobody is asked.
std::vector<std::string> WhyCommand(const std::string& program_directory,
                                    const std::string& run_directory) {
  const std::string ddlctl = fs::path(program_directory) / "ddlctl";
  if (access(ddlctl.c_str(), X_OK) != 0) return {};
  return {ddlctl, "why", run_directory};
}

ConsoleOptions ConsoleOf(const Options& options, const JobRun& run) {
  ConsoleOptions console;
  console.tag_format = options.tag_format;
  if (!options.fold_output.empty()) {
    console.fold = options.fold_output == "equal" ? FoldOutput::kEqual : FoldOutput::kNumbers;
  }
  console.hosts = run.hosts;
  for (const RankPlacement& rank : run.planned.plan.ranks) {
    console.local_ranks.push_back(rank.local_rank);
    const bool is_shown =
        options.shown_ranks.empty() || IsInRankList(options.shown_ranks.c_str(), rank.rank);
    if (is_shown) ++console.shown_ranks;
  }
  return console;
}

JobResult StartAndWait(const Invocation& invocation, const JobRun& run,
                       const std::vector<ChildCommand>& commands,
                       std::vector<std::unique_ptr<JobWatcher>> watchers,
                       CleanupProcess& cleanup_process, SignalRelay& signals) {
  SupervisorOptions supervisor;
  supervisor.cleanup_process = &cleanup_process;
  supervisor.grace = invocation.settings.grace;
  supervisor.console = ConsoleOf(invocation.options, run);
  supervisor.shown_ranks = invocation.options.shown_ranks;
  supervisor.log_directory = invocation.options.log_directory;
  supervisor.event_key = commands.front().event_key;
  supervisor.hosts = run.hosts;
  supervisor.watchers = std::move(watchers);
  std::set<int> components;
  for (const RankPlacement& rank : run.planned.plan.ranks) {
    components.insert(run.planned.plan.nodes[static_cast<std::size_t>(rank.node)].component);
  }
  supervisor.hang_query = {.command = WhyCommand(invocation.program_directory, run.directory),
                           .environment = invocation.environment};
  supervisor.step_tools.environment = WithoutDefaultsOfSlurmTools(invocation.environment);
  supervisor.step_tools.signal = [&](const std::string& step, int signal) {
    return SignalStepCommand(StepsOfComponents(step, components, invocation.environment), signal,
                             invocation.environment);
  };
  supervisor.step_tools.list = [&](const std::string& step) {
    return ListStepsCommand(StepsOfComponents(step, components, invocation.environment),
                            invocation.environment);
  };
  return Supervise(commands, supervisor, signals);
}

// Of each node of the plan: how many GPUs the job was granted there, or, outside Slurm, has ranks
// for.
std::vector<int> GpusOfNodes(const LaunchPlan& plan) {
  std::vector<std::set<int>> used(plan.nodes.size());
  for (const RankPlacement& rank : plan.ranks) {
    if (rank.gpu >= 0) used[static_cast<std::size_t>(rank.node)].insert(rank.gpu);
  }
  std::vector<int> gpus;
  for (std::size_t node = 0; node < used.size(); ++node) {
    const int granted = plan.nodes[node].gpus;
    gpus.push_back(granted > 0 ? granted : static_cast<int>(used[node].size()));
  }
  return gpus;
}

// Of ranks that are children of ddlrun, whose shims are gone once they run; those of others have a
// meter on each node.
EnergyMeter StartMeter(const LaunchPlan& plan, const ChildCommand& rank) {
  constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES=";
  const int gpus = GpusOfNodes(plan).front();
  if (!rank.launcher->is_direct || gpus <= 0) return {};
  const auto visible = std::ranges::find_if(
      rank.environment, [&](const std::string& text) { return text.starts_with(kVisible); });
  return StartEnergyMeter(
      (rank.argv.front() + kEnergySuffix).c_str(), gpus,
      visible == rank.environment.end() ? nullptr : visible->c_str() + kVisible.size());
}

void AddMeasured(EnergyMeter meter, JobResult* result) {
  const long long millijoules = StopEnergyMeter(&meter);
  if (millijoules <= 0) return;
  result->joules += static_cast<double>(millijoules) / 1000;
  ++result->measured_nodes;
}

void RecordEnd(const LaunchPlan& plan, const JobResult& result, RunRecorder* recorder) {
  const auto nodes = std::ranges::count_if(GpusOfNodes(plan), [](int gpus) { return gpus > 0; });
  const bool is_measured = result.measured_nodes > 0;
  recorder->OnGone(result.exit_code, is_measured ? std::optional(result.joules) : std::nullopt,
                   result.measured_nodes < nodes);
}

// What `ddlctl why` has seen of a job that hung is kept where the user keeps the output of ranks.
void KeepDiagnosis(const RunDirectory& directory, const std::string& log_directory) {
  if (log_directory.empty()) return;
  const fs::path file = fs::path(directory.path()) / kWhyFileName;
  const support::WholeFile diagnosis = support::ReadWholeFile(file, kMaxDiagnosisBytes);
  if (diagnosis.content.empty()) return;
  support::ReplaceFile(fs::path(log_directory) / kWhyFileName, diagnosis.content, {.mode = 0600});
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
  const ProbeOutcome probe = ProbeNodes(silent, AnotherNode(plan, silent), launch.srun, environment,
                                        std::chrono::seconds(20));
  result->lost_nodes = probe.lost;
  for (const std::string& host : probe.lost) {
    result->notes.push_back("no rank has responded on " + host +
                            " any more, and a step of srun does not run there either");
  }
  if (!probe.unknown.empty()) {
    result->notes.push_back("no rank has responded on " + SomeOf(silent) +
                            " any more, and whether that is lost is not known: " + probe.unknown);
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
  AddToLog(directory, report.commands + report.table + report.messages + last_lines);
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
  const std::string announcement = Announcement(options, planned, settings, launch, geteuid() == 0);
  FillRunDirectory(directory, planned, settings,
                   announcement + CommandsText(commands, CommandLength::kWhole));
  if (options.verbose) Say(SettingsText(settings) + PlanAsText(planned.plan));
  if (!options.run_directory.empty()) Say(WhereTheLogIs(directory.path()));
  CleanupProcess cleanup_process(options.run_directory.empty() ? directory.path() : "");
  const JobRun run = {options, settings,         invocation.environment,     planned,
                      launch,  directory.path(), HostsOfRanks(planned.plan), invocation.recorder};
  std::vector<std::unique_ptr<JobWatcher>> watchers = WatchersOf(run);
  if (options.check_only || settings.check == "full") {
    const std::optional<RunResult> end =
        LookAtNodes(invocation, planned, launch, directory, restarts, signals, cleanup_process);
    if (end) return *end;
  }
  Say(announcement + CommandsText(commands));

  restarts.BeforeRun(PlannedHostsOfJob(planned));
  const EnergyMeter meter = StartMeter(planned.plan, commands.front());
  JobResult result =
      StartAndWait(invocation, run, commands, std::move(watchers), cleanup_process, signals);
  AddMeasured(meter, &result);
  RecordEnd(planned.plan, result, invocation.recorder);
  if (result.own_end) KeepDiagnosis(directory, options.log_directory);
  LookForLostNodes(planned.plan, launch, invocation.environment, &result);
  const Decision decision = restarts.AfterRun(result);
  std::string text = EndText(result, decision);
  const RunCost cost = invocation.recorder->Cost();
  if (decision.next != Decision::Next::kRestart &&
      ShowsCost(cost, result.exit_code, options.verbose)) {
    text.insert(0, "ddlrun: " + CostText(cost) + "\n");
  }
  AddToLog(directory, text + "exit code " + std::to_string(result.exit_code) + "\n");
  Say(text, result.stop_requested);
  return {result.exit_code, decision.next == Decision::Next::kRestart, result.step_is_left,
          decision.pause};
}

}  // namespace launcher
