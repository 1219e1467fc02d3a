// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/supervisor.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "launcher/base/exit_codes.h"
#include "launcher/supervise/deadlines.h"
#include "launcher/supervise/job_children.h"
#include "launcher/supervise/job_output.h"
#include "launcher/supervise/rank_reports.h"
#include "launcher/supervise/signals_to_ranks.h"
#include "launcher/supervise/silent_nodes.h"
#include "launcher/supervise/time_limits.h"

namespace launcher {
namespace {

using Clock = std::chrono::steady_clock;

using Kind = ChildCommand::Kind;
using News = RankReports::News;

enum class State { kRunning, kEnding, kKilling, kKilled };

class Supervisor {
 public:
  Supervisor(const SupervisorOptions& options, SignalRelay& signals)
      : options_(options),
        signals_(signals),
        output_(options.grace),
        children_(options),
        reports_(options.report_key),
        to_ranks_(options.step_tools, children_, reports_),
        nodes_of_job_(options.nodes_of_job),
        limits_(options.start_limit, options.end_limit, options.hosts.size()),
        end_of_job_(options.end_of_job),
        status_file_(options.status_file) {}

  void Start(const ChildCommand& command);
  JobResult Run();

 private:
  void WaitForEvent();
  void HandleSignals();
  void HandleOrderToStop(int number);
  void RelayOutput();
  void RelayLastOutput();
  void LookAtHeartbeat();
  void LookAtEndOfJob();
  void LookAtNodesOfJob();
  void TellStatus();
  void EndStepThatIsLeft();
  void HandleNews(News news);
  void RecordEnd(const JobChild& child, const siginfo_t& info);

  bool WouldBeHeard() const { return !options_.report_key.empty() && !may_hide_reports_; }
  bool IsBeforeStart() const;
  bool GoesOn() const { return state_ == State::kRunning; }
  void GiveStartUp();
  void GiveEndUp();
  void ExpectEnd(std::chrono::milliseconds limit);
  void EndChildren();
  void Advance();
  void Kill();

  JobResult Result();
  double SecondsSinceStart() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

  const SupervisorOptions& options_;
  SignalRelay& signals_;
  JobOutput output_;
  JobChildren children_;
  RankReports reports_;
  SignalsToRanks to_ranks_;
  NodesOfJob nodes_of_job_;
  TimeLimits limits_;
  EndOfJob end_of_job_;
  StatusFile status_file_;
  std::map<int, int> exit_codes_;         // of children that are ranks and did not end well
  std::unique_ptr<Heartbeat> heartbeat_;  // while it is watched
  JobResult result_;
  State state_ = State::kRunning;
  bool may_hide_reports_ = false;
  std::optional<Clock::time_point> deadline_;  // when the time for ending or killing is over
  std::set<int> ended_;                        // children that are ranks and have ended
  // Of a job that ddlrun has ended though no rank had failed.
  std::optional<int> own_exit_code_;
  bool has_lost_srun_ = false;  // a signal has ended srun
  bool has_arrived_ = false;    // scancel has ended, with which the step was killed
  int interrupts_ = 0;
  const Clock::time_point start_ = Clock::now();
};

void Supervisor::Start(const ChildCommand& command) {
  children_.Start(command, signals_.original_mask(), &output_, [this](std::string_view line) {
    const RankReports::Reading reading = reports_.Read(line, SecondsSinceStart());
    HandleNews(reading.news);
    return reading.instead;
  });
  may_hide_reports_ = command.may_hide_reports;
  if (command.kind != Kind::kRank && !options_.hosts.empty()) limits_.ExpectStart(Clock::now());
  nodes_of_job_.ExpectStart(Clock::now());
}

JobResult Supervisor::Run() {
  if (!options_.heartbeat.pattern.empty()) {
    heartbeat_ = std::make_unique<Heartbeat>(options_.heartbeat);
  }
  while (!children_.AllEnded()) {
    WaitForEvent();
    HandleSignals();
    RelayOutput();
    LookAtHeartbeat();
    LookAtEndOfJob();
    LookAtNodesOfJob();
    children_.LookForStopped(result_.told_to_stop, &output_);
    TellStatus();
    children_.Reap({end_of_job_.question(), nodes_of_job_.question()},
                   [this](const auto& child, const auto& info) { RecordEnd(child, info); });
    Advance();
  }
  end_of_job_.StopAsking();
  children_.EndOrphans();
  RelayLastOutput();
  EndStepThatIsLeft();
  return Result();
}

void Supervisor::WaitForEvent() {
  std::vector<pollfd> ready = {{signals_.fd(), POLLIN, 0}};
  output_.AppendTo(&ready);
  if (heartbeat_ != nullptr) ready.push_back({heartbeat_->fd(), POLLIN, 0});
  std::vector<Deadline> deadlines = {output_.deadline()};
  if (!children_.AllEnded()) {
    deadlines.insert(
        deadlines.end(),
        {GoesOn() ? limits_.deadline() : deadline_, to_ranks_.deadline(), end_of_job_.deadline(),
         nodes_of_job_.deadline(), status_file_.deadline(), children_.look_at()});
  }
  poll(ready.data(), ready.size(), MillisecondsLeft(deadlines, Clock::now()));
}

void Supervisor::HandleSignals() {
  while (const std::optional<int> number = signals_.Next()) {
    if (IsOrderToStop(*number)) {
      HandleOrderToStop(*number);
    } else if (*number == SIGTSTP) {
      // Ctrl-Z stops ddlrun alone: ranks have sessions of their own.  A job that is ending ends.
      if (GoesOn() && !result_.told_to_stop && !children_.AllEnded()) to_ranks_.Stop();
    } else if (*number != SIGCHLD) {  // Run looks at the children anyway
      to_ranks_.Relay(*number);
    }
  }
}

void Supervisor::HandleOrderToStop(int number) {
  const bool is_first = !result_.told_to_stop && GoesOn() && !children_.AllEnded();
  if (is_first) result_.stop_signal = number;
  result_.told_to_stop = true;
  output_.ExpectEnd();
  if (number == SIGINT && ++interrupts_ > 1) {
    children_.Signal(children_.kind() == Kind::kRank ? SIGKILL : SIGTERM);
    ExpectEnd(kGraceOfOthers);
  } else if (!IsBeforeStart() || !reports_.step().empty()) {
    to_ranks_.Relay(number);
    to_ranks_.Relay(SIGCONT);  // a rank that is stopped would not see the order
  } else if (GoesOn() && !children_.AllEnded()) {
    Kill();  // there is nobody yet whom the order could reach
  }
}

// Whether srun or mpirun has not started the program of any rank so far.
bool Supervisor::IsBeforeStart() const {
  return children_.kind() != Kind::kRank && WouldBeHeard() && !reports_.has_begun();
}

void Supervisor::RelayOutput() {
  output_.Relay();
  // Like any program whose output goes to a closed pipe (to head), ddlrun ends the job.  After an
  // order to stop it is ending anyway, and the reader may have got the same order: Ctrl-C reaches a
  // tee as well.
  if (!output_.IsClosed() || !GoesOn() || result_.told_to_stop) return;
  result_.output_is_closed = true;
  own_exit_code_ = 128 + SIGPIPE;
  EndChildren();
}

// Ends a job whose ranks make no progress.
void Supervisor::LookAtHeartbeat() {
  if (heartbeat_ == nullptr) return;
  if (!GoesOn() || result_.told_to_stop || children_.AllEnded()) return heartbeat_.reset();
  const std::set<int>& ended = children_.kind() == Kind::kRank ? ended_ : reports_.ended();
  const std::optional<std::string> late = heartbeat_->TakeLate(options_.hosts, ended);
  if (!late) return;
  if (output_.IsHeld()) {  // who waits for a reader cannot go on
    heartbeat_ = std::make_unique<Heartbeat>(options_.heartbeat);
    return;
  }
  result_.hang = *late;
  own_exit_code_ = EX_SOFTWARE;
  EndChildren();
}

// Tells the ranks in time that the job ends, unless they are ending.
void Supervisor::LookAtEndOfJob() {
  if (!end_of_job_.Look(Clock::now()) || !GoesOn() || result_.told_to_stop) return;
  to_ranks_.Relay(end_of_job_.signal());
  result_.told_of_end = true;
  result_.notes.push_back(end_of_job_.Note());
}

// Ends a start on nodes that the job no longer has.
void Supervisor::LookAtNodesOfJob() {
  if (!IsBeforeStart() || !GoesOn() || result_.told_to_stop) return nodes_of_job_.Dismiss();
  result_.refusal = nodes_of_job_.Look(Clock::now());
  if (!result_.refusal.empty()) Kill();
}

// From time to time.
void Supervisor::TellStatus() {
  if (!status_file_.deadline() || Clock::now() < *status_file_.deadline()) return;
  JobStatus status = options_.status_file.head;
  if (children_.kind() == Kind::kRank) {
    SetRankStates(nullptr, ended_, exit_codes_, &status);
  } else {
    SetRankStates(&reports_.started(), reports_.ended(), reports_.exit_codes(), &status);
  }
  if (heartbeat_ != nullptr) heartbeat_->SetSilences(&status);
  status_file_.Write(std::move(status));
}

// Passes on what the children wrote last.  Waits for the reader, unless ddlrun was told to stop.
void Supervisor::RelayLastOutput() {
  output_.ExpectLast();
  for (;;) {
    if (result_.told_to_stop) output_.ExpectNothing();
    if (!output_.Relay()) return;
    if (!output_.IsWaiting()) continue;
    WaitForEvent();
    HandleSignals();
  }
}

void Supervisor::EndStepThatIsLeft() {
  const bool is_left = reports_.has_left_step() || has_lost_srun_;
  if (!to_ranks_.has_killed_step() && is_left) to_ranks_.KillStep();
  if (to_ranks_.has_killed_step() && !to_ranks_.WaitUntilKilled(options_.patience_with_step)) {
    result_.step_is_left = true;
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
  const Clock::time_point now = Clock::now();
  if (news == News::kStart) limits_.SetStarted(reports_.started().size(), now);
  if (news == News::kWaiting) limits_.AwaitResources();
  if (news == News::kGranted && limits_.is_starting()) limits_.ExpectStart(now);
  if (news == News::kEnd) limits_.SetEnded(reports_.ended().size(), now);
}

// Ends a start that takes too long, and names the nodes of the ranks that have not started.
void Supervisor::GiveStartUp() {
  const bool is_unheard = children_.kind() == Kind::kMpirun && reports_.started().empty();
  if (is_unheard && children_.MayHaveStartedAny()) return limits_.GiveStartUp();
  result_.not_started = NodesNotStarted(options_.hosts, reports_.started());
  own_exit_code_ = EX_UNAVAILABLE;
  Kill();
}

// Ends a job whose last ranks do not end, and names them.
void Supervisor::GiveEndUp() {
  const bool is_rank = children_.kind() == Kind::kRank;
  result_.not_ended = RanksNotEnded(options_.hosts, is_rank ? ended_ : reports_.ended());
  const std::optional<RankFailure> early = is_rank ? result_.failure : reports_.failure();
  // Any other failure than an early stop would have ended the job.
  own_exit_code_ = early ? early->exit_code : EX_UNAVAILABLE;
  Kill();
}

void Supervisor::RecordEnd(const JobChild& child, const siginfo_t& info) {
  const RankFailure end = FailureOf(child.rank, options_.hosts, info, SecondsSinceStart());
  if (child.kind == Kind::kRank) {
    ended_.insert(child.rank);
    if (end.exit_code != 0) exit_codes_.emplace(child.rank, end.exit_code);
    limits_.SetEnded(ended_.size(), Clock::now());
  }
  if (end.exit_code == 0) return;
  if (child.kind == Kind::kSrun && end.signal != 0) has_lost_srun_ = true;
  AddEnd(child.kind, end, GoesOn() && !result_.told_to_stop, &result_);
  if (end.exit_code != EX_TEMPFAIL) EndChildren();
}

// The children are about to end, and have `limit` for it.
void Supervisor::ExpectEnd(std::chrono::milliseconds limit) {
  if (!GoesOn() || children_.AllEnded()) return;
  state_ = State::kEnding;
  deadline_ = Clock::now() + limit;
  output_.ExpectEnd();
}

void Supervisor::EndChildren() {
  if (!GoesOn()) return;
  children_.Signal(SIGTERM);
  children_.Signal(SIGCONT);  // a rank that is stopped would not see SIGTERM
  ExpectEnd(options_.grace);
}

void Supervisor::Advance() {
  if (state_ == State::kKilling && to_ranks_.has_killed_step() && !has_arrived_ &&
      to_ranks_.HaveArrived()) {
    has_arrived_ = true;
    deadline_ = Clock::now() + options_.grace;
  }
  // slurmctld refuses where it has cancelled the job itself: then Slurm ends the ranks.
  if (to_ranks_.TakeLostOrder() && !reports_.cancelled() && !children_.AllEnded()) {
    // Without slurmctld nothing can end the step, but srun still passes SIGUSR1 on to the ranks.
    children_.Signal(SIGUSR1);
    result_.notes.push_back("slurmctld did not pass the order to stop on: ranks got SIGUSR1");
  }
  if (to_ranks_.TakeStopped()) {
    StopAsTerminalWants();  // until SIGCONT, which the ranks get, too
    limits_.BeginAnew(Clock::now());
  }
  const Clock::time_point now = Clock::now();
  if (GoesOn()) {
    const TimeLimits::Over over = limits_.Look(now);
    if (over == TimeLimits::Over::kNothing) return;
    if (output_.IsHeld()) return limits_.BeginAnew(now);  // who waits for a reader cannot go on
    return over == TimeLimits::Over::kStart ? GiveStartUp() : GiveEndUp();
  }
  if (!deadline_ || now < *deadline_) return;
  if (state_ == State::kEnding) return Kill();
  children_.Signal(SIGKILL);
  state_ = State::kKilled;
  deadline_.reset();
}

// Kills the job.  srun and mpirun are not killed at once, since that would leave the ranks on other
// nodes alive: the step is killed first, or mpirun gets SIGTERM.
void Supervisor::Kill() {
  state_ = State::kKilling;
  output_.ExpectEnd();
  deadline_ = Clock::now();
  if (children_.kind() == Kind::kRank) return;
  const bool has_killed_step = to_ranks_.KillStep();
  *deadline_ += has_killed_step ? kPatienceWithScancel : kGraceOfOthers;
  if (has_killed_step) return;
  children_.Signal(SIGTERM);
  children_.Signal(SIGCONT);
}

JobResult Supervisor::Result() {
  JobResult result = result_;
  result.end_of_job = end_of_job_.end();
  if (children_.kind() == Kind::kRank) {
    // The last lines of the rank may have been read only after its end was seen.
    if (result.failure) children_.AddLastLines(&*result.failure);
  } else {
    AddReports(reports_, children_.kind(), options_.hosts, WouldBeHeard(), &result);
  }
  if (own_exit_code_) {
    result.cancelled.reset();  // Slurm has not done that by itself then
    result.failure.reset();    // no rank is to blame
    result.exit_code = *own_exit_code_;
  }
  if (IsBeforeStart()) SetBeforeStart(&result);
  const bool has_failed = IsBeforeStart() && result.exit_code != 0 && !result.told_to_stop;
  if (has_failed && result.refusal.empty()) result.refusal = nodes_of_job_.AskAtOnce();
  if (!result.refusal.empty()) result.exit_code = EX_CONFIG;
  if (children_.kind() == Kind::kSrun) AddSilentNodes(reports_, options_.hosts, &result);
  for (std::string& note : output_.Notes()) result.notes.push_back(std::move(note));
  return result;
}

}  // namespace

JobResult Supervise(const std::vector<ChildCommand>& commands, const SupervisorOptions& options,
                    SignalRelay& signals) {
  Supervisor supervisor(options, signals);
  for (const ChildCommand& command : commands) supervisor.Start(command);
  return supervisor.Run();
}

}  // namespace launcher
