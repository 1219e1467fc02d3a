// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/supervisor.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "launcher/base/error.h"
#include "launcher/supervise/job_supervisor.h"
#include "launcher/supervise/nodes_of_job.h"
#include "launcher/supervise/time_limits.h"

namespace launcher {

void JobSupervisor::Start(const ChildCommand& command) {
  children_.Start(command, signals_.original_mask(), &output_, [this](std::string_view line) {
    const RankEventParser::Reading reading = events_.Read(line, SecondsSinceStart());
    HandleEvent(reading.event);
    return reading.instead;
  });
  may_hide_events_ = command.may_hide_events;
  if (!command.launcher->is_direct && !options_.hosts.empty()) limits_.ExpectStart(Clock::now());
  nodes_of_job_.ExpectStart(Clock::now());
}

JobResult JobSupervisor::Run() {
  if (!options_.heartbeat.pattern.empty()) {
    heartbeat_ = std::make_unique<Heartbeat>(options_.heartbeat);
  }
  while (!children_.AllEnded()) {
    WaitForEvent();
    HandleSignals();
    RelayOutput();
    LookAtHeartbeat();
    PollTimeLimit();
    LookAtNodesOfJob();
    children_.LookForStopped(result_.stop_requested, &output_);
    ReportStatus();
    children_.Reap({time_limit_.question(), nodes_of_job_.question()},
                   [this](const auto& child, const auto& info) { RecordEnd(child, info); });
    Advance();
  }
  time_limit_.StopAsking();
  nodes_of_job_.Dismiss();
  for (std::string& note : children_.EndOrphans()) result_.notes.push_back(std::move(note));
  RelayLastOutput();
  EndStepThatIsLeft();
  return Result();
}

void JobSupervisor::WaitForEvent() {
  std::vector<pollfd> ready = {{signals_.fd(), POLLIN, 0}};
  output_.AppendTo(&ready);
  if (heartbeat_ != nullptr) ready.push_back({heartbeat_->fd(), POLLIN, 0});
  std::vector<Deadline> deadlines = {output_.deadline()};
  if (!children_.AllEnded()) {
    deadlines.insert(deadlines.end(),
                     {HasRunningRanks() ? limits_.deadline() : deadline_, to_ranks_.deadline(),
                      time_limit_.deadline(), nodes_of_job_.deadline(), status_file_.deadline(),
                      children_.look_at(), gone_until_});
  }
  poll(ready.data(), ready.size(), MillisecondsLeft(deadlines, Clock::now()));
}

void JobSupervisor::HandleSignals() {
  while (const std::optional<int> number = signals_.Next()) {
    if (IsStopRequest(*number)) {
      HandleStopRequest(*number);
    } else if (*number == SIGTSTP) {
      // Ctrl-Z stops ddlrun alone: ranks have sessions of their own.  A job that is ending ends.
      if (HasRunningRanks() && !result_.stop_requested && !children_.AllEnded()) to_ranks_.Stop();
    } else if (*number != SIGCHLD) {  // Run looks at the children anyway
      RelayToRanks(*number);
    }
  }
}

void JobSupervisor::RelayToRanks(int number) {
  if (number != SIGUSR2 || !launcher().dies_of_usr2) return to_ranks_.Relay(number);
  output_.Say("ddlrun: " + std::string(launcher().program) +
              " passes no SIGUSR2 on to the ranks; SIGUSR1 reaches them");
}

void JobSupervisor::HandleStopRequest(int number) {
  const bool is_first = !result_.stop_requested && HasRunningRanks() && !children_.AllEnded();
  if (is_first) result_.stop_signal = number;
  result_.stop_requested = true;
  output_.ExpectEnd();
  if (number == SIGINT && ++interrupts_ > 1) {
    children_.Signal(launcher().is_direct ? SIGKILL : SIGTERM);
    ExpectEnd(kGraceOfOthers);
  } else if (!IsBeforeStart() || !events_.step().empty()) {
    to_ranks_.Relay(number);
    to_ranks_.Relay(SIGCONT);  // a rank that is stopped would not see the order
  } else if (HasRunningRanks() && !children_.AllEnded()) {
    Kill();  // there is nobody yet whom the order could reach
  }
}

// Whether srun or mpirun has not started the program of any rank so far.
bool JobSupervisor::IsBeforeStart() const {
  return !launcher().is_direct && CanReport() && !events_.has_begun();
}

void JobSupervisor::RelayOutput() {
  output_.Relay();
  // Like any program whose output goes to a closed pipe (to head), ddlrun ends the job.  After an
  // order to stop it is ending anyway, and the reader may have got the same order: Ctrl-C reaches a
  // tee as well.
  if (!output_.IsClosed() || !HasRunningRanks() || result_.stop_requested) return;
  result_.output_is_closed = true;
  own_exit_code_ = 128 + SIGPIPE;
  EndChildren();
}

// Ends a job whose ranks make no progress.
void JobSupervisor::LookAtHeartbeat() {
  if (heartbeat_ == nullptr) return;
  if (!HasRunningRanks() || result_.stop_requested || children_.AllEnded())
    return heartbeat_.reset();
  const std::set<int>& ended = launcher().is_direct ? ended_ : events_.ended();
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
void JobSupervisor::PollTimeLimit() {
  if (!time_limit_.Look(Clock::now()) || !HasRunningRanks() || result_.stop_requested) return;
  RelayToRanks(time_limit_.signal());
  result_.notified_of_end = true;
  result_.notes.push_back(time_limit_.Note());
}

// Ends a start on nodes that the job no longer has.
void JobSupervisor::LookAtNodesOfJob() {
  if (!IsBeforeStart() || !HasRunningRanks() || result_.stop_requested)
    return nodes_of_job_.Dismiss();
  result_.rejection = nodes_of_job_.Look(Clock::now());
  if (!result_.rejection.empty()) Kill();
}

// From time to time.
void JobSupervisor::ReportStatus() {
  if (!status_file_.deadline() || Clock::now() < *status_file_.deadline()) return;
  JobStatus status = options_.status_file.head;
  if (launcher().is_direct) {
    SetRankStates(nullptr, ended_, exit_codes_, &status);
  } else {
    SetRankStates(&events_.started(), events_.ended(), events_.exit_codes(), &status);
  }
  if (heartbeat_ != nullptr) heartbeat_->SetSilences(&status);
  status_file_.Write(std::move(status));
}

// Passes on what the children wrote last.  Waits for the reader, unless a stop of ddlrun was
// requested.
void JobSupervisor::RelayLastOutput() {
  output_.ExpectLast();
  for (;;) {
    if (result_.stop_requested) output_.ExpectNothing();
    if (!output_.Relay()) return;
    if (!output_.IsWaiting()) continue;
    WaitForEvent();
    HandleSignals();
  }
}

void JobSupervisor::HandleEvent(Event event) {
  if (event == Event::kFailure && !result_.stop_requested) EndRanks();
  if (event == Event::kLostNode) ExpectEnd(kGraceOfOthers);
  const Clock::time_point now = Clock::now();
  if (event == Event::kStart) limits_.SetStarted(events_.started().size(), now);
  if (event == Event::kWaiting) limits_.AwaitResources();
  if (event == Event::kGranted && limits_.is_starting()) limits_.ExpectStart(now);
  if (event == Event::kEnd) limits_.SetEnded(events_.ended().size(), now);
  if (event == Event::kEnd || event == Event::kGone) ReleaseLauncher();
}

void JobSupervisor::RecordEnd(const JobChild& child, const siginfo_t& info) {
  const RankFailure end = FailureOf(child.rank, options_.hosts, info, SecondsSinceStart());
  if (launcher().is_direct) {
    ended_.insert(child.rank);
    if (end.exit_code != 0) exit_codes_.emplace(child.rank, end.exit_code);
    limits_.SetEnded(ended_.size(), Clock::now());
  }
  if (end.exit_code == 0) return;
  if (launcher().makes_step && end.signal != 0) has_lost_srun_ = true;
  AddEnd(launcher(), end, HasRunningRanks() && !result_.stop_requested, &result_);
  if (end.exit_code != EX_TEMPFAIL) EndChildren();
}

JobResult JobSupervisor::Result() {
  JobResult result = result_;
  result.time_limit = time_limit_.end();
  if (launcher().is_direct) {
    // The last lines of the rank may have been read only after its end was seen.
    if (result.failure) children_.AddLastLines(&*result.failure);
  } else {
    if (is_abandoned_) result.exit_code = events_.exit_code_of_gone();
    AddEvents(events_, launcher(), options_.hosts, CanReport(), &result);
  }
  if (own_exit_code_) {
    result.cancelled.reset();  // Slurm has not done that by itself then
    result.failure.reset();    // no rank is to blame
    result.exit_code = *own_exit_code_;
  }
  if (IsBeforeStart()) SetBeforeStart(&result);
  const bool has_failed = IsBeforeStart() && result.exit_code != 0 && !result.stop_requested;
  if (has_failed && result.rejection.empty()) result.rejection = nodes_of_job_.QueryNow();
  if (!result.rejection.empty()) result.exit_code = EX_CONFIG;
  if (launcher().makes_step) AddSilentNodes(events_, options_.hosts, &result);
  for (std::string& note : output_.Notes()) result.notes.push_back(std::move(note));
  return result;
}

JobResult Supervise(const std::vector<ChildCommand>& commands, const SupervisorOptions& options,
                    SignalRelay& signals) {
  JobSupervisor supervisor(options, signals);
  for (const ChildCommand& command : commands) supervisor.Start(command);
  return supervisor.Run();
}

}  // namespace launcher
