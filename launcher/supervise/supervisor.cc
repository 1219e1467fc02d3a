// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/supervisor.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>

#include "launcher/exit_codes.h"
#include "launcher/rank/rank_log.h"
#include "launcher/rank/tail.h"
#include "launcher/shim/rank_report.h"
#include "launcher/supervise/child_process.h"
#include "launcher/supervise/end_counts.h"
#include "launcher/supervise/line_relay.h"

namespace launcher {
namespace {

using Clock = std::chrono::steady_clock;

using Kind = ChildCommand::Kind;

// srun and mpirun end their ranks within seconds of their own SIGTERM.
constexpr std::chrono::milliseconds kGraceOfOthers{8000};

// Of srun where Slurm cannot bind; it was told not to.
constexpr std::string_view kNoBinding = "srun: cluster configuration lacks support for cpu binding";

struct Child {
  Kind kind = Kind::kRank;
  int rank = -1;
  pid_t pid = 0;
  bool has_ended = false;
  Tail tail;
  Descriptor log;
  std::vector<LineRelay> outputs;
};

class Supervisor {
 public:
  Supervisor(const SupervisorOptions& options, SignalRelay& signals)
      : options_(options), signals_(signals) {}
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  // Only after an exception are children left here.
  ~Supervisor() {
    SignalAll(SIGKILL);
    for (const auto& child : children_) {
      if (!child->has_ended) waitpid(child->pid, nullptr, 0);
    }
  }

  void Start(const ChildCommand& command);
  JobResult Run();

 private:
  void WaitForEvent();
  void HandleSignals();
  void ReapEnded();
  void RecordEnd(const Child& child, const siginfo_t& info);
  void RelayOutputs();
  void StopAll();
  void SignalAll(int number) const;
  bool AllEnded() const;
  std::string HostOf(int rank) const;
  RankFailure Describe(const Child& child, int exit_code, int signal) const;
  bool ReadShimLine(std::string_view line);
  void SetFailure(const RankEnd& end);
  void ExpectEndOfSrun();
  void SignalRanks(const Child& child, int number);
  double SecondsSinceStart() const;

  const SupervisorOptions& options_;
  SignalRelay& signals_;
  std::vector<std::unique_ptr<Child>> children_;
  JobResult result_;
  std::map<int, Tail> last_lines_;  // that shims told of
  EndCounts ends_;
  std::string step_;             // of srun, once it runs
  bool output_is_lost_ = false;  // nobody reads ddlrun's output any more
  bool is_stopping_ = false;
  int interrupts_ = 0;
  std::optional<Clock::time_point> kill_at_;
  const Clock::time_point start_ = Clock::now();
};

void Supervisor::Start(const ChildCommand& command) {
  const bool is_rank = command.kind == Kind::kRank;
  ChildSpec spec;
  spec.argv = command.argv;
  spec.environment = command.environment;
  spec.death_signal = is_rank ? SIGKILL : SIGTERM;  // the others must have time to end their ranks
  spec.reads_stdin = command.rank <= 0;
  spec.capture_stdout = is_rank;
  spec.signal_mask = signals_.original_mask();
  ChildProcess process = StartChild(spec);
  if (options_.guardian != nullptr) {
    options_.guardian->Watch(process.pid, is_rank ? std::chrono::milliseconds(0) : kGraceOfOthers);
  }

  auto child = std::make_unique<Child>();
  child->kind = command.kind;
  child->rank = command.rank;
  child->pid = process.pid;
  std::string tag;
  if (options_.tag_output && is_rank) tag = "[" + std::to_string(command.rank) + "] ";
  // The shims of srun and mpirun write theirs themselves.
  if (is_rank && !options_.log_directory.empty()) {
    child->log = Descriptor(OpenRankLog(options_.log_directory, command.rank));
  }
  const auto on_line = [this, is_rank, child = child.get()](std::string_view line) {
    if (!is_rank) return ReadShimLine(line);
    child->tail.Add(line);
    if (child->log.is_open()) {
      const std::string text = std::string(line) + "\n";
      WriteAll(child->log.fd(), text.data(), text.size());
    }
    return true;
  };
  if (process.stdout_pipe.is_open()) {
    child->outputs.emplace_back(std::move(process.stdout_pipe), STDOUT_FILENO, tag, on_line);
  }
  child->outputs.emplace_back(std::move(process.stderr_pipe), STDERR_FILENO, tag, on_line);
  children_.push_back(std::move(child));
}

JobResult Supervisor::Run() {
  while (!AllEnded()) {
    WaitForEvent();
    HandleSignals();
    RelayOutputs();
    ReapEnded();
    if (kill_at_ && Clock::now() >= *kill_at_) {
      if (!step_.empty() && options_.signal_step) options_.signal_step(step_, SIGKILL);
      SignalAll(SIGKILL);
      kill_at_.reset();
    }
  }
  RelayOutputs();
  if (!result_.failure) return result_;
  RankFailure& failure = *result_.failure;
  if (children_[0]->kind == Kind::kRank) {
    // What a rank wrote last may have come after its end was seen.
    for (const auto& child : children_) {
      if (child->rank != failure.rank) continue;
      failure.last_lines.assign(child->tail.lines().begin(), child->tail.lines().end());
    }
    return result_;
  }
  failure.others = ends_.Text();
  // The code of srun and mpirun may be that of a rank they killed; where all stopped early it is 0.
  if (result_.exit_code != 0 || failure.exit_code == EX_TEMPFAIL) {
    result_.exit_code = failure.exit_code;
  }
  const auto lines = last_lines_.find(failure.rank);
  if (lines != last_lines_.end()) {
    failure.last_lines.assign(lines->second.lines().begin(), lines->second.lines().end());
  }
  return result_;
}

void Supervisor::WaitForEvent() {
  std::vector<pollfd> ready = {{signals_.fd(), POLLIN, 0}};
  for (const auto& child : children_) {
    for (const LineRelay& output : child->outputs) {
      if (output.is_open()) ready.push_back({output.fd(), POLLIN, 0});
    }
  }
  int timeout_ms = -1;
  if (kill_at_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*kill_at_ - Clock::now());
    timeout_ms = std::max(0, static_cast<int>(left.count()));
  }
  poll(ready.data(), ready.size(), timeout_ms);
}

void Supervisor::HandleSignals() {
  while (const std::optional<int> number = signals_.Next()) {
    if (*number == SIGCHLD) continue;  // ReapEnded looks anyway
    if (IsOrderToStop(*number)) result_.told_to_stop = true;
    if (*number == SIGINT && ++interrupts_ > 1) {
      SignalAll(children_[0]->kind == Kind::kRank ? SIGKILL : SIGTERM);
    } else {
      for (const auto& child : children_) SignalRanks(*child, *number);
    }
  }
}

void Supervisor::ReapEnded() {
  for (const auto& child : children_) {
    if (child->has_ended) continue;
    siginfo_t info = {};
    // Looked at first and reaped after its group is gone: until then no other can have its number.
    if (waitid(P_PID, static_cast<id_t>(child->pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
      continue;
    }
    kill(-child->pid, SIGKILL);
    waitpid(child->pid, nullptr, 0);
    child->has_ended = true;
    RecordEnd(*child, info);
  }
}

void Supervisor::RecordEnd(const Child& child, const siginfo_t& info) {
  const int signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
  const int exit_code = signal == 0 ? info.si_status : 128 + signal;
  if (exit_code == 0) return;
  const bool stopped_early = exit_code == EX_TEMPFAIL;
  if (result_.exit_code == 0 || (result_.exit_code == EX_TEMPFAIL && !stopped_early)) {
    result_.exit_code = exit_code;
    if (child.kind == Kind::kRank) {
      result_.failure = Describe(child, exit_code, signal);
    } else if (signal != 0 && !result_.told_to_stop && !result_.failure &&
               result_.lost_nodes.empty()) {
      result_.launcher_end = std::string(child.kind == Kind::kSrun ? "srun" : "mpirun") +
                             " was ended by " + DescribeEnd(Describe(child, exit_code, signal));
    }
  }
  if (!stopped_early) StopAll();
}

std::string Supervisor::HostOf(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  return rank >= 0 && index < options_.hosts.size() ? options_.hosts[index] : "";
}

RankFailure Supervisor::Describe(const Child& child, int exit_code, int signal) const {
  RankFailure failure;
  failure.rank = child.rank;
  failure.host = HostOf(child.rank);
  failure.pid = child.pid;
  failure.exit_code = exit_code;
  failure.signal = signal;
  failure.seconds = SecondsSinceStart();
  return failure;
}

// A signal that ddlrun was sent.  srun takes SIGTERM, SIGINT and SIGHUP for a wish to kill the step
// at once and keeps SIGCONT to itself, so these go to the ranks through Slurm.
void Supervisor::SignalRanks(const Child& child, int number) {
  if (child.has_ended) return;
  const bool asks_to_stop = number == SIGTERM || number == SIGINT || number == SIGHUP;
  if (child.kind == Kind::kSrun && (asks_to_stop || number == SIGCONT) && !step_.empty() &&
      options_.signal_step) {
    options_.signal_step(step_, number);
  } else if (child.kind == Kind::kMpirun && asks_to_stop) {
    kill(-child.pid, options_.stop_signal_of_mpirun);
  } else {
    kill(-child.pid, number);
  }
}

// Whether `end` came before `known`, which was told first: the peer of a dead rank ends within a
// millisecond, and its report may take the shorter way.  Clocks that are seconds apart tell
// nothing.
bool CameBefore(const RankEnd& end, const RankEnd& known) {
  constexpr double kMeanwhile = 1;  // seconds
  return end.time > 0 && known.time > 0 && end.time < known.time &&
         known.time - end.time < kMeanwhile &&
         (end.exit_code == EX_TEMPFAIL) == (known.exit_code == EX_TEMPFAIL);
}

// Under srun and mpirun the shims say which rank failed, from every node; the first to say so
// counts, or the first by the clocks of the nodes.  False for a line that is not for the user.
bool Supervisor::ReadShimLine(std::string_view line) {
  if (line == kNoBinding) return false;
  if (const std::optional<std::string> step = ParseStep(line)) {
    step_ = *step;
    return false;
  }
  if (const std::optional<RankLine> last = ParseRankLine(line)) {
    last_lines_[last->rank].Add(last->text);
    return false;
  }
  if (const std::optional<RankEnd> end = ParseRankEnd(line)) {
    const bool stopped_early = end->exit_code == EX_TEMPFAIL;
    // srun's word about a rank is as good, but not as complete.
    const bool is_better = !result_.failure ||
                           (result_.failure->pid == 0 && result_.failure->rank == end->rank) ||
                           (result_.failure->exit_code == EX_TEMPFAIL && !stopped_early) ||
                           CameBefore(*end, *result_.failure);
    if (is_better) SetFailure(*end);
    // Nobody will ask for the last lines of another: they came before its end.
    if (end->rank != result_.failure->rank) last_lines_.erase(end->rank);
    if (!stopped_early) ExpectEndOfSrun();
    return !stopped_early && ends_.Add(*end);
  }
  if (const std::optional<std::string> host = ParseLostNode(line)) {
    // srun then ends the other tasks by itself, but has been seen to hang.
    result_.lost_nodes.push_back(*host);
    if (!kill_at_) kill_at_ = Clock::now() + kGraceOfOthers;
    return true;
  }
  const std::optional<RankEnd> task = ParseSrunError(line);
  if (task && !result_.failure) SetFailure(*task);
  if (task && task->exit_code != EX_TEMPFAIL) ExpectEndOfSrun();
  return !task || ends_.Add(*task, ParseSrunTasks(line));
}

// It has been seen to hang when a step daemon did not end its ranks.  Ranks that were told to stop
// have the time that Slurm gives them.
void Supervisor::ExpectEndOfSrun() {
  if (kill_at_ || result_.told_to_stop || children_[0]->kind != Kind::kSrun) return;
  kill_at_ = Clock::now() + std::max(options_.grace, options_.grace_of_srun);
}

void Supervisor::SetFailure(const RankEnd& end) {
  RankFailure failure;
  static_cast<RankEnd&>(failure) = end;
  failure.seconds = SecondsSinceStart();
  result_.failure = failure;
}

double Supervisor::SecondsSinceStart() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Supervisor::RelayOutputs() {
  for (const auto& child : children_) {
    for (LineRelay& output : child->outputs) {
      if (!output.is_open() || output.Relay() || output_is_lost_) continue;
      // As for a program whose output goes to `head`: it ends, quietly.
      output_is_lost_ = true;
      if (result_.exit_code == 0) result_.exit_code = 128 + SIGPIPE;
      StopAll();
    }
  }
}

void Supervisor::StopAll() {
  if (is_stopping_) return;
  is_stopping_ = true;
  SignalAll(SIGTERM);
  SignalAll(SIGCONT);  // a stopped rank cannot see SIGTERM
  kill_at_ = Clock::now() + options_.grace;
}

void Supervisor::SignalAll(int number) const {
  for (const auto& child : children_) {
    if (!child->has_ended) kill(-child->pid, number);
  }
}

bool Supervisor::AllEnded() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const auto& child) { return child->has_ended; });
}

}  // namespace

JobResult Supervise(const std::vector<ChildCommand>& commands, const SupervisorOptions& options,
                    SignalRelay& signals) {
  Supervisor supervisor(options, signals);
  for (const ChildCommand& command : commands) supervisor.Start(command);
  return supervisor.Run();
}

}  // namespace launcher
