// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/health_check.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>

#include "launcher/base/error.h"
#include "launcher/base/messages.h"
#include "launcher/health/check_rules.h"
#include "launcher/health/node_info.h"
#include "launcher/health/pair_schedule.h"
#include "launcher/launch/launcher.h"
#include "launcher/pipeline/commands.h"
#include "launcher/placement/launch_plan_files.h"
#include "launcher/protocol/rank_exit.h"
#include "launcher/supervise/failure_report.h"
#include "launcher/system/child_process.h"
#include "launcher/system/files.h"
#include "launcher/system/line_reader.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

// The time for the check on a node.  The nodes of a large job take seconds to start and to meet,
// and more nodes take longer, since they meet by messages that go round in a ring
// (doc/decisions/0014).
constexpr int kNodeLimitSeconds = 30;
constexpr int kNodesOfAnExtraSecond = 100;
// The time for one pair of nodes.  InfiniBand and TCP try a second time after one to three seconds.
constexpr int kLinkLimitSeconds = 5;
// The time for srun or mpirun to start and to end.
constexpr int kStartLimitSeconds = 30;
constexpr int kSecondsOfNoCheck = 3600;

int NodeLimitSeconds(std::size_t nodes) {
  return kNodeLimitSeconds + static_cast<int>(nodes) / kNodesOfAnExtraSecond;
}

// The working directory of ddlrun, in which the ranks will start as well; "" where it is gone.
std::string WorkingDirectory() {
  std::error_code error;
  return fs::current_path(error).string();
}

constexpr char kProbePrefix[] = ".ddlrun-check.";

// Removes the files of checks that were killed together with their guardian, as Slurm kills all of
// a control group.  They are more than an hour old: no check lasts that long, and no clock of a
// file server is that wrong.
void RemoveLeftProbes(const fs::path& directory) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(kProbePrefix)) continue;
    struct stat info = {};
    const bool is_left = lstat(entry->path().c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
                         info.st_uid == geteuid() && info.st_size == 0 &&
                         info.st_mtime + kSecondsOfNoCheck < time(nullptr);
    if (is_left) unlink(entry->path().c_str());
  }
}

// A file in the working directory, by which other nodes find out whether they see the same
// directory. It is removed at the end, and by a guardian if ddlrun is killed.
class ProbeFile {
 public:
  ProbeFile() : path_(WorkingDirectory() + "/" + kProbePrefix + "XXXXXX") {
    RemoveLeftProbes(WorkingDirectory());
    const int file = mkostemp(path_.data(), O_CLOEXEC);
    if (file < 0) {
      error_ = WorkingDirectory() + " cannot be written: " + std::strerror(errno);
      return;
    }
    close(file);
    cleanup_process_.emplace(path_);
  }
  ~ProbeFile() { Remove(); }
  ProbeFile(const ProbeFile&) = delete;
  ProbeFile& operator=(const ProbeFile&) = delete;

  std::string name() const { return error_.empty() ? fs::path(path_).filename().string() : ""; }
  const std::string& error() const { return error_; }
  void Remove() const {
    if (error_.empty()) unlink(path_.c_str());
  }

 private:
  std::string path_;
  std::string error_;
  std::optional<CleanupProcess> cleanup_process_;
};

CheckedJob MakeCheckedJob(const LaunchPlan& plan, const CheckLimits& limits) {
  CheckedJob job;
  job.limits = limits;
  for (const NodePlacement& node : plan.nodes) {
    std::set<int> gpus;
    for (const int rank : node.ranks) {
      const int gpu = plan.ranks[static_cast<std::size_t>(rank)].gpu;
      if (gpu >= 0) gpus.insert(gpu);
    }
    job.nodes.push_back({node.host, static_cast<int>(gpus.size())});
  }
  return job;
}

std::vector<ChildCommand> MakeCheckCommands(const HealthCheck& check, const PlannedJob& planned,
                                            const std::string& probe) {
  Options options = check.options;
  options.rankfile.clear();
  options.log_directory.clear();
  options.tag_format.clear();
  options.shown_ranks.clear();
  options.fold_output.clear();
  options.wraps.clear();
  Settings settings = check.settings;
  settings.bind = false;
  settings.stays_here = false;  // a node that lacks the directory is to report that
  settings.check = "off";  // the shim would refuse a node that lacks GPUs, which is to report it
  options.program = {RequireHelper("ddlrun-node-check", check.program_directory), "--limit",
                     std::to_string(NodeLimitSeconds(planned.plan.nodes.size())), "--link-limit",
                     std::to_string(kLinkLimitSeconds)};
  // That of the planned ranks, which need not begin on the first node as those of the check do.
  const std::string address = MasterAddress(check.settings, check.planned, check.environment);
  if (!address.empty()) {
    options.program.insert(options.program.end(), {"--master-address", address});
  }
  if (!probe.empty()) options.program.insert(options.program.end(), {"--probe", probe});
  if (check.details) {
    options.program.insert(options.program.end(), {"--details", "yes"});
  }
  const std::string directory = check.run_directory.path() + "/check";
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    throw OsError("cannot make " + directory);
  }
  for (const auto& [name, text] : FilesOf(planned)) {
    check.run_directory.Append("check/" + name, text);
  }
  return MakeCommands(options, settings, planned, check.launch, check.environment, directory,
                      check.program_directory);
}

int LimitSeconds(const LaunchPlan& plan) {
  return kStartLimitSeconds + NodeLimitSeconds(plan.nodes.size());
}

struct CheckStep {
  std::vector<ChildCommand> commands;
  int nodes = 1;
  std::chrono::seconds limit{60};  // after which the step is ended
  std::function<void()> on_stop;   // called once when the step is ended
};

struct CheckStepResult {
  std::vector<NodeInfo> info;      // of each node; `host` is "" when it did not report
  std::string end;                 // how the launcher ended: "the launcher ended with exit code 1"
  std::vector<std::string> lines;  // the last lines that were printed and are not facts
  std::optional<int> interrupted;  // the signal that asked ddlrun to stop
};

using Clock = std::chrono::steady_clock;

// How long srun and mpirun may take to end after SIGTERM; they end what they have started in
// seconds.
constexpr std::chrono::seconds kGrace{8};

class StepRunner {
 public:
  StepRunner(const CheckStep& step, SignalRelay& signals, CleanupProcess& cleanup_process)
      : step_(step),
        signals_(signals),
        cleanup_process_(cleanup_process),
        reader_(step.nodes),
        end_(Clock::now() + step.limit) {}
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;
  // Kills the children that are left, which only happens after an exception.
  ~StepRunner() {
    SignalAll(SIGKILL);
    for (const pid_t pid : children_) waitpid(pid, nullptr, 0);
  }

  CheckStepResult Run() {
    for (const ChildCommand& command : step_.commands) Start(command);
    while (!children_.empty()) {
      Wait();
      while (const std::optional<int> number = signals_.Next()) HandleSignal(*number);
      ReadOutputs();
      ReapEnded();
      if (Clock::now() < end_) continue;
      if (is_stopping_) SignalAll(SIGKILL);
      Stop("the launcher did not end within " + std::to_string(step_.limit.count()) + " s");
    }
    ReadOutputs();
    result_.info = reader_.Facts();
    result_.lines.assign(tail_.lines().begin(), tail_.lines().end());
    return result_;
  }

 private:
  void Start(const ChildCommand& command) {
    ChildSpec spec;
    spec.argv = command.argv;
    spec.environment = command.environment;
    spec.death_signal = SIGTERM;
    spec.signal_mask = signals_.original_mask();
    ChildProcess process = StartChild(spec);
    cleanup_process_.Watch(process.pid, kGrace);
    children_.push_back(process.pid);
    for (support::Descriptor* pipe : {&process.stdout_pipe, &process.stderr_pipe}) {
      outputs_.emplace_back(std::move(*pipe), LineReader::Unit::kLines,
                            [this, head = EventHead(command.event_key)](std::string_view text) {
                              ReadLine(WithoutEnd(text), head);
                            });
    }
  }

  void ReadLine(std::string_view text, const std::string& head) {
    const std::optional<std::string> output = WithoutOutputMarks(text, head);
    const std::string_view line = output ? std::string_view(*output) : text;
    const std::optional<LineWithEvent> found = FindEvent(line, head);
    if (found && (ParseStep(found->report) || ParseRankStart(found->report))) return;
    if (!reader_.Add(line)) tail_.Add(found ? ShownReport(found->report) : std::string(line));
  }

  void Wait() {
    std::vector<pollfd> ready = {{signals_.fd(), POLLIN, 0}};
    for (const LineReader& output : outputs_) {
      if (output.is_open()) ready.push_back({output.fd(), POLLIN, 0});
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
    poll(ready.data(), ready.size(), std::max(0, static_cast<int>(left.count())));
  }

  void HandleSignal(int number) {
    if (number != SIGTERM && number != SIGINT && number != SIGHUP) return;
    result_.interrupted = number;
    Stop("a stop of ddlrun was requested");
  }

  void ReadOutputs() {
    for (LineReader& output : outputs_) {
      while (output.is_open() && output.Read()) {
      }
    }
  }

  void ReapEnded() {
    std::erase_if(children_, [this](pid_t pid) {
      siginfo_t info = {};
      // The child is reaped when its group is gone, since no other group can get its number before.
      if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          info.si_pid == 0) {
        return false;
      }
      kill(-pid, SIGKILL);
      cleanup_process_.Forget(pid);
      int status = 0;
      waitpid(pid, &status, 0);
      if (result_.end.empty()) {
        result_.end =
            "the launcher ended with exit code " + std::to_string(ExitCodeOfWaitStatus(status));
      }
      return true;
    });
  }

  void Stop(const std::string& how) {
    if (is_stopping_) return;
    is_stopping_ = true;
    result_.end = how;
    if (step_.on_stop) step_.on_stop();
    SignalAll(SIGTERM);
    end_ = Clock::now() + kGrace;
  }

  void SignalAll(int number) const {
    for (const pid_t pid : children_) kill(-pid, number);
  }

  const CheckStep& step_;
  SignalRelay& signals_;
  CleanupProcess& cleanup_process_;
  NodeInfoReader reader_;
  Tail tail_;
  std::vector<pid_t> children_;
  std::vector<LineReader> outputs_;
  Clock::time_point end_;
  bool is_stopping_ = false;
  CheckStepResult result_;
};

// Blocks until no child is left.  SIGTERM, SIGINT and SIGHUP end the step.  Throws LaunchError when
// a child cannot be started, or prints facts that this version of ddlrun-node-check does not write.
CheckStepResult RunCheckStep(const CheckStep& step, SignalRelay& signals,
                             CleanupProcess& cleanup_process) {
  return StepRunner(step, signals, cleanup_process).Run();
}

}  // namespace

LaunchPlan OneRankPerNode(const LaunchPlan& plan) {
  LaunchPlan checks;
  checks.mode = plan.mode;
  checks.racks = plan.racks;
  checks.aisles = plan.aisles;
  for (const NodePlacement& node : plan.nodes) {
    const auto index = static_cast<int>(checks.nodes.size());
    RankPlacement rank;
    rank.rank = index;
    rank.node = index;
    checks.ranks.push_back(rank);
    checks.nodes.push_back(node);
    checks.nodes.back().ranks = {index};
  }
  return checks;
}

std::string CheckAnnouncement(const LaunchPlan& plan) {
  const auto nodes = static_cast<int>(plan.nodes.size());
  if (nodes == 1) return "";
  const int rounds = RoundsOf(nodes);
  const auto longest = LongestTest(nodes, std::chrono::seconds(kLinkLimitSeconds));
  std::array<char, 64> seconds = {};
  std::snprintf(seconds.data(), seconds.size(), "%.1f s",
                std::chrono::duration<double>(longest).count());
  return "ddlrun: checking " + std::to_string(nodes) + " nodes, each against " +
         (nodes > kMaxNodesOfAllPairs ? std::to_string(rounds) + " others" : "all others") +
         ": at most " + seconds.data() + " once they have met, " +
         std::to_string(LimitSeconds(plan)) + " s in any case\n";
}

HealthCheckResult CheckHealth(const HealthCheck& check) {
  PlannedJob planned = check.planned;
  planned.plan = OneRankPerNode(planned.plan);
  planned.rankfile_text.clear();
  const ProbeFile probe;
  CheckStep step;
  step.commands = MakeCheckCommands(check, planned, probe.name());
  // The file is removed at once: when the job is cancelled there may be no time until the step has
  // ended.
  step.on_stop = [&probe] { probe.Remove(); };
  step.nodes = static_cast<int>(planned.plan.nodes.size());
  step.limit = std::chrono::seconds(LimitSeconds(planned.plan));
  const CheckStepResult result = RunCheckStep(step, check.signals, check.cleanup_process);

  HealthCheckResult report;
  report.commands = CommandsText(step.commands);
  if (result.interrupted) {
    report.rejection =
        "ddlrun: the check was stopped by signal " + std::to_string(*result.interrupted) + "\n";
    report.exit_code = 128 + *result.interrupted;
    return report;
  }
  CheckedJob job = MakeCheckedJob(check.planned.plan, check.settings.check_limits);
  job.directory_error = probe.error();
  job.launcher_end = result.end;
  const auto has_pmix =
      std::ranges::find_if(result.info, [](const NodeInfo& info) { return !info.pmix.empty(); });
  if (has_pmix != result.info.end() && check.launch.choice.mpi_type.starts_with("pmix")) {
    job.pmix_fault = KnownPmixFault(check.launch.slurm, has_pmix->pmix,
                                    static_cast<int>(check.planned.plan.ranks.size()));
  }
  report.info = result.info;
  report.lines = result.lines;
  report.verdicts = CheckNodes(job, result.info);
  const std::vector<Verdict>& verdicts = report.verdicts;
  report.table = VerdictTable(verdicts);
  if (verdicts.front().status == Status::kFail) {
    for (const std::string& line : result.lines) report.table += "| " + line + "\n";
  }
  if (verdicts.back().status == Status::kNotKnown && !AnyFailed(verdicts)) {
    report.messages += "ddlrun: " +
                       Coded(Message::kNoConnectionTests,
                             "the connections between the nodes are not tested, see above") +
                       "\n";
  }
  if (AnyFailed(verdicts)) {
    report.exit_code = EX_CONFIG;
    report.bad_nodes = BadNodes(verdicts);
    report.rejection =
        "ddlrun: " +
        Coded(Message::kConfiguration,
              "a check failed, no rank was started: see the table above; --check=auto "
              "starts without looking at all nodes") +
        "\n";
  }
  return report;
}

}  // namespace launcher
