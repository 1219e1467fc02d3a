// SPDX-License-Identifier: Apache-2.0
//
// A job is in one of these states:
//
//   state    when                                         what is done                     then
//   running  ddlrun is sent a signal                      every rank gets it               running
//            a child fails, or nobody can read any more   children get SIGTERM             ending
//            a shim or srun tells of a failed rank        nothing: the launcher ends all   ending
//            srun tells of a lost node                    nothing: srun ends all           ending
//   any      the second SIGINT                            ranks get SIGKILL, srun and      ending
//                                                         mpirun SIGTERM
//   ending   its time is over                             the step gets SIGKILL, mpirun    killing
//                                                         SIGTERM
//   killing  scancel has arrived and srun has had its     children get SIGKILL             killed
//            grace; or the time is over
//   any      no child is left                             a step that srun left gets       -
//                                                         SIGKILL; ddlrun waits until a
//                                                         killed one is gone
//
// A failure after an order to stop does not end the job: the ranks that stop have the time that
// Slurm gives them.

#include "launcher/supervise/supervisor.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "launcher/exit_codes.h"
#include "launcher/rank/rank_log.h"
#include "launcher/rank/tail.h"
#include "launcher/shim/rank_report.h"
#include "launcher/supervise/child_process.h"
#include "launcher/supervise/job_output.h"
#include "launcher/supervise/rank_reports.h"

namespace launcher {
namespace {

using Clock = std::chrono::steady_clock;

using Kind = ChildCommand::Kind;
using News = RankReports::News;

// srun and mpirun end their ranks within seconds of their own SIGTERM.
constexpr std::chrono::milliseconds kGraceOfOthers{8000};
// scancel answers within a second, and takes longer where slurmctld is busy or not there.
constexpr std::chrono::milliseconds kPatienceWithScancel{10000};
// What ended children may have left in a pipe is less than so many reads.
constexpr int kLastReads = 64;

enum class State { kRunning, kEnding, kKilling, kKilled };

struct Child {
  Kind kind = Kind::kRank;
  int rank = -1;
  pid_t pid = 0;
  bool has_ended = false;
  Tail tail;
  Descriptor log;
};

class Supervisor {
 public:
  Supervisor(const SupervisorOptions& options, SignalRelay& signals)
      : options_(options),
        signals_(signals),
        step_signals_(options.step_tools),
        output_(options.grace) {}
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
  void RelaySignal(const Child& child, int number);
  void RelayOutput();
  void RelayLastOutput();
  void EndStepThatIsLeft();
  void HandleNews(News news);
  void ReapEnded();
  void RecordEnd(const Child& child, const siginfo_t& info);

  void ExpectEnd(std::chrono::milliseconds limit);
  void EndChildren();
  void Advance();
  void Kill();
  void SignalAll(int number) const;

  JobResult Result();
  bool AllEnded() const;
  Kind kind() const { return children_[0]->kind; }  // all are of one
  RankFailure Describe(const Child& child, int exit_code, int signal) const;
  double SecondsSinceStart() const;

  const SupervisorOptions& options_;
  SignalRelay& signals_;
  StepSignals step_signals_;
  std::vector<std::unique_ptr<Child>> children_;
  JobOutput output_;
  RankReports reports_;
  JobResult result_;
  State state_ = State::kRunning;
  std::optional<Clock::time_point> deadline_;  // of the state
  bool has_killed_step_ = false;
  bool has_arrived_ = false;  // that signal
  int interrupts_ = 0;
  const Clock::time_point start_ = Clock::now();
};

void Supervisor::Start(const ChildCommand& command) {
  const bool is_rank = command.kind == Kind::kRank;
  ChildSpec spec;
  spec.argv = command.argv;
  spec.environment = command.environment;
  spec.death_signal = is_rank ? SIGKILL : SIGTERM;  // the others must have time to end their ranks
  spec.reads_stdin = command.rank <= 0;
  spec.signal_mask = signals_.original_mask();
  ChildProcess process = StartChild(spec);
  if (options_.guardian != nullptr) {
    options_.guardian->Watch(process.pid, is_rank ? std::chrono::milliseconds(0) : kGraceOfOthers);
  }

  children_.push_back(std::make_unique<Child>());
  Child* const child = children_.back().get();
  child->kind = command.kind;
  child->rank = command.rank;
  child->pid = process.pid;
  using Unit = LineReader::Unit;
  if (!is_rank) {
    // The shims write logs and, by srun and mpirun, tags.
    output_.Add(std::move(process.stdout_pipe), STDOUT_FILENO, Unit::kChunks, "",
                [](std::string_view) { return true; });
    output_.Add(std::move(process.stderr_pipe), STDERR_FILENO, Unit::kLines, "",
                [this](std::string_view text) {
                  const auto reading = reports_.Read(WithoutEnd(text), SecondsSinceStart());
                  HandleNews(reading.news);
                  return reading.is_for_user;
                });
    return;
  }
  const std::string tag = options_.tag_output ? "[" + std::to_string(command.rank) + "] " : "";
  if (!options_.log_directory.empty()) {
    child->log = Descriptor(OpenRankLog(options_.log_directory, command.rank));
  }
  const auto on_line = [child](std::string_view text) {
    child->tail.Add(WithoutEnd(text));
    if (child->log.is_open()) {
      const std::string line = std::string(WithoutEnd(text)) + "\n";
      WriteAll(child->log.fd(), line.data(), line.size());
    }
    return true;
  };
  output_.Add(std::move(process.stdout_pipe), STDOUT_FILENO, Unit::kLines, tag, on_line);
  output_.Add(std::move(process.stderr_pipe), STDERR_FILENO, Unit::kLines, tag, on_line);
}

JobResult Supervisor::Run() {
  while (!AllEnded()) {
    WaitForEvent();
    HandleSignals();
    RelayOutput();
    ReapEnded();
    Advance();
  }
  RelayLastOutput();
  EndStepThatIsLeft();
  return Result();
}

void Supervisor::WaitForEvent() {
  std::vector<pollfd> ready = {{signals_.fd(), POLLIN, 0}};
  output_.AppendTo(&ready);
  std::optional<Clock::time_point> deadline = deadline_;
  const auto other = output_.deadline();
  if (other && (!deadline || *other < *deadline)) deadline = other;
  int timeout_ms = -1;
  if (deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
    timeout_ms = std::max(0, static_cast<int>(left.count()));
  }
  poll(ready.data(), ready.size(), timeout_ms);
}

void Supervisor::HandleSignals() {
  while (const std::optional<int> number = signals_.Next()) {
    if (*number == SIGCHLD) continue;  // ReapEnded and Advance look anyway
    if (IsOrderToStop(*number)) {
      if (!result_.told_to_stop && state_ == State::kRunning) result_.stop_signal = *number;
      result_.told_to_stop = true;
      output_.ExpectEnd();
    }
    if (*number == SIGINT && ++interrupts_ > 1) {
      SignalAll(kind() == Kind::kRank ? SIGKILL : SIGTERM);
      ExpectEnd(kGraceOfOthers);
    } else {
      for (const auto& child : children_) RelaySignal(*child, *number);
    }
  }
}

// srun takes SIGTERM, SIGINT and SIGHUP for a wish to kill the step at once and keeps SIGCONT to
// itself, so these go to the ranks through Slurm.
void Supervisor::RelaySignal(const Child& child, int number) {
  if (child.has_ended) return;
  const bool is_kept_by_srun = IsOrderToStop(number) || number == SIGCONT;
  if (child.kind == Kind::kSrun && is_kept_by_srun && !reports_.step().empty() &&
      step_signals_.Send(reports_.step(), number)) {
    return;
  }
  const bool is_for_shims = child.kind == Kind::kMpirun && IsOrderToStop(number);
  kill(-child.pid, is_for_shims ? options_.stop_signal_of_mpirun : number);
}

void Supervisor::RelayOutput() {
  output_.Relay();
  // As for a program whose output goes to `head`: it ends, quietly.
  if (!output_.IsClosed() || state_ != State::kRunning) return;
  if (result_.exit_code == 0) result_.exit_code = 128 + SIGPIPE;
  EndChildren();
}

// What children wrote last.  Waits for the reader, if ddlrun was not told to stop.
void Supervisor::RelayLastOutput() {
  deadline_.reset();
  for (int reads = 0; reads < kLastReads;) {
    if (result_.told_to_stop) output_.ExpectNothing();
    if (!output_.Relay()) return;
    if (!output_.IsWaiting()) {
      ++reads;
      continue;
    }
    WaitForEvent();
    HandleSignals();
  }
}

void Supervisor::EndStepThatIsLeft() {
  if (!has_killed_step_ && reports_.has_left_step() && !reports_.step().empty()) {
    has_killed_step_ = step_signals_.Send(reports_.step(), SIGKILL);
  }
  if (has_killed_step_ &&
      !WaitUntilStepIsGone(options_.step_tools, reports_.step(), options_.patience_with_step)) {
    result_.notes.push_back("step " + reports_.step() +
                            " was killed and is still there: Slurm could not end all of its ranks "
                            "yet");
  }
}

void Supervisor::HandleNews(News news) {
  if (news == News::kFailure && !result_.told_to_stop) {
    ExpectEnd(std::max(options_.grace, options_.grace_of_launcher));
  }
  if (news == News::kLostNode) ExpectEnd(kGraceOfOthers);
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
    } else if (signal != 0 && state_ == State::kRunning && !result_.told_to_stop) {
      result_.launcher_end = std::string(child.kind == Kind::kSrun ? "srun" : "mpirun") +
                             " was ended by " + DescribeEnd(Describe(child, exit_code, signal));
    }
  }
  if (!stopped_early) EndChildren();
}

// The children are ending, or are ended by the launcher, and have `limit` for it.
void Supervisor::ExpectEnd(std::chrono::milliseconds limit) {
  if (state_ != State::kRunning || AllEnded()) return;
  state_ = State::kEnding;
  deadline_ = Clock::now() + limit;
  output_.ExpectEnd();
}

void Supervisor::EndChildren() {
  if (state_ != State::kRunning) return;
  SignalAll(SIGTERM);
  SignalAll(SIGCONT);  // a stopped rank cannot see SIGTERM
  ExpectEnd(options_.grace);
}

void Supervisor::Advance() {
  if (state_ == State::kKilling && has_killed_step_ && !has_arrived_ &&
      step_signals_.HasArrived()) {
    has_arrived_ = true;
    deadline_ = Clock::now() + options_.grace;
  }
  if (!deadline_ || Clock::now() < *deadline_) return;
  if (state_ == State::kEnding) {
    Kill();
  } else {
    SignalAll(SIGKILL);
    state_ = State::kKilled;
    deadline_.reset();
  }
}

// Begins with what ends the ranks of other nodes, which SIGKILL for srun or mpirun would not.
void Supervisor::Kill() {
  state_ = State::kKilling;
  deadline_ = Clock::now();
  if (kind() == Kind::kRank) return;
  has_killed_step_ = kind() == Kind::kSrun && !reports_.step().empty() &&
                     step_signals_.Send(reports_.step(), SIGKILL);
  *deadline_ += has_killed_step_ ? kPatienceWithScancel : kGraceOfOthers;
  if (has_killed_step_) return;
  SignalAll(SIGTERM);
  SignalAll(SIGCONT);
}

void Supervisor::SignalAll(int number) const {
  for (const auto& child : children_) {
    if (!child->has_ended) kill(-child->pid, number);
  }
}

JobResult Supervisor::Result() {
  JobResult result = result_;
  if (kind() == Kind::kRank) {
    for (const auto& child : children_) {
      if (!result.failure || child->rank != result.failure->rank) continue;
      // What a rank wrote last may have come after its end was seen.
      result.failure->last_lines.assign(child->tail.lines().begin(), child->tail.lines().end());
    }
  } else {
    result.lost_nodes = reports_.lost_nodes();
    result.failure = reports_.failure();
    result.cancelled = reports_.cancelled();
    // The code of srun and mpirun may be that of a rank they killed; where all stopped early it is
    // 0.
    if (result.failure && (result.exit_code != 0 || result.failure->exit_code == EX_TEMPFAIL)) {
      result.exit_code = result.failure->exit_code;
    }
  }
  for (std::string& note : output_.Notes()) result.notes.push_back(std::move(note));
  return result;
}

bool Supervisor::AllEnded() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const auto& child) { return child->has_ended; });
}

RankFailure Supervisor::Describe(const Child& child, int exit_code, int signal) const {
  RankFailure failure;
  const auto index = static_cast<std::size_t>(child.rank);
  failure.rank = child.rank;
  if (child.rank >= 0 && index < options_.hosts.size()) failure.host = options_.hosts[index];
  failure.pid = child.pid;
  failure.exit_code = exit_code;
  failure.signal = signal;
  failure.seconds = SecondsSinceStart();
  return failure;
}

double Supervisor::SecondsSinceStart() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

}  // namespace

JobResult Supervise(const std::vector<ChildCommand>& commands, const SupervisorOptions& options,
                    SignalRelay& signals) {
  Supervisor supervisor(options, signals);
  for (const ChildCommand& command : commands) supervisor.Start(command);
  return supervisor.Run();
}

}  // namespace launcher
