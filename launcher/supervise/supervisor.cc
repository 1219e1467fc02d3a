// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/supervisor.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "launcher/base/error.h"
#include "launcher/supervise/job_supervisor.h"
#include "launcher/system/open_files.h"
#include "support/number.h"

namespace launcher {

void JobSupervisor::Start(const ChildCommand& command) {
  children_.Start(command, signals_.original_mask(), &output_, [this](std::string_view line) {
    const RankEventParser::Reading reading = events_.Read(line, SecondsSinceStart());
    HandleEvent(reading.event);
    return reading.instead;
  });
  may_hide_events_ = command.may_hide_events;
  if (command.launcher->is_direct) started_.insert(command.rank);
}

JobResult JobSupervisor::Run() {
  for (const auto& watcher : options_.watchers) watcher->OnLaunch(*this);
  while (!children_.AllEnded()) {
    WaitForEvent();
    HandleSignals();
    output_.Relay();
    std::vector<pid_t> no_ranks;
    for (const auto& watcher : options_.watchers) {
      watcher->Poll(*this);
      no_ranks.push_back(watcher->child());
    }
    no_ranks.push_back(hang_query_.child());  // which a watcher may have begun
    children_.Reap(std::move(no_ranks),
                   [this, sent = SentToAll()](const auto& child, const auto& info) {
                     RecordEnd(child, info, sent);
                   });
    Advance();
  }
  for (const auto& watcher : options_.watchers) watcher->EndChild();
  for (std::string& note : children_.EndOrphans()) result_.notes.push_back(std::move(note));
  RelayLastOutput();
  EndStepThatIsLeft();
  return Result();
}

void JobSupervisor::WaitForEvent() {
  std::vector<pollfd> ready = {{signals_.fd(), POLLIN, 0}};
  output_.AppendTo(&ready);
  std::vector<Deadline> deadlines = {output_.deadline()};
  if (!children_.AllEnded()) {
    if (!HasRunningRanks()) deadlines.push_back(deadline_);
    deadlines.insert(deadlines.end(), {to_ranks_.deadline(), gone_until_, hang_query_.deadline()});
    for (const auto& watcher : options_.watchers) {
      deadlines.push_back(watcher->deadline());
      if (watcher->fd() >= 0) ready.push_back({watcher->fd(), POLLIN, 0});
    }
  }
  poll(ready.data(), ready.size(), MillisecondsLeft(deadlines, Clock::now()));
}

void JobSupervisor::HandleSignals() {
  while (const std::optional<int> number = signals_.Next()) {
    if (IsStopRequest(*number)) {
      HandleStopRequest(*number);
    } else if (*number == SIGTSTP) {
      // Ctrl-Z stops ddlrun alone: ranks have sessions of their own.  A job that is ending ends.
      if (IsRunning() && !result_.stop_requested) to_ranks_.Stop();
    } else if (*number != SIGCHLD) {  // Run looks at the children anyway
      SendToRanks(*number);
    }
  }
}

void JobSupervisor::SendToRanks(int signal) {
  if (signal != SIGUSR2 || !launcher().dies_of_usr2) return to_ranks_.Relay(signal);
  Say("ddlrun: " + std::string(launcher().program) +
      " passes no SIGUSR2 on to the ranks; SIGUSR1 reaches them");
}

void JobSupervisor::HandleStopRequest(int number) {
  const bool is_first = !result_.stop_requested && IsRunning();
  if (is_first) result_.stop_signal = number;
  result_.stop_requested = true;
  output_.ExpectEnd();
  if (number == SIGINT && ++interrupts_ > 1) {
    children_.Signal(launcher().is_direct ? SIGKILL : SIGTERM);
    ExpectEnd(kGraceOfOthers);
  } else if (!IsBeforeStart() || !events_.step().empty()) {
    to_ranks_.Relay(number);
    to_ranks_.Relay(SIGCONT);  // a rank that is stopped would not see the order
  } else if (IsRunning()) {
    was_killed_before_start_ = true;
    KillJob();  // there is nobody yet whom the order could reach
  }
}

bool JobSupervisor::IsBeforeStart() const {
  return !launcher().is_direct && CanReport() && !events_.has_begun();
}

const std::set<int>& JobSupervisor::started() const {
  return launcher().is_direct ? started_ : events_.started();
}

const std::set<int>& JobSupervisor::ended() const {
  return launcher().is_direct ? ended_ : events_.ended();
}

const std::map<int, int>& JobSupervisor::exit_codes() const {
  return launcher().is_direct ? exit_codes_ : events_.exit_codes();
}

void JobSupervisor::AskWatchers(JobStatus* status) const {
  for (const auto& watcher : options_.watchers) watcher->AddTo(status);
}

// Passes on what the children wrote last.  Waits for the reader, unless a stop of ddlrun was
// requested.
void JobSupervisor::RelayLastOutput() {
  output_.ExpectLast();
  for (;;) {
    if (result_.stop_requested) output_.ExpectNothing();
    if (!output_.Relay() && !output_.EndConsole()) return;
    if (!output_.IsWaiting()) continue;
    WaitForEvent();
    HandleSignals();
  }
}

void JobSupervisor::HandleEvent(Event event) {
  if (event == Event::kNone) return;
  if (event == Event::kFailure && !result_.stop_requested) EndRanks();
  if (event == Event::kStart && awaits_starts_) NotifyOfFailure();
  if (event == Event::kLostNode) ExpectEnd(kGraceOfOthers);
  for (const auto& watcher : options_.watchers) watcher->OnEvent(*this, event);
  HandleAttachment();
  if (event == Event::kEnd || event == Event::kGone) ReleaseLauncher();
}

void JobSupervisor::SetAttached(int rank, bool is_attached) {
  attached_.erase(rank);
  if (is_attached) attached_.insert(rank);
  HandleAttachment();
}

void JobSupervisor::HandleAttachment() {
  const std::set<int>& attached = launcher().is_direct ? attached_ : events_.attached();
  if (std::exchange(was_attached_, !attached.empty()) == was_attached_) return;
  if (!was_attached_) {
    for (const auto& watcher : options_.watchers) watcher->OnDetach(*this);
  } else if (!std::exchange(has_said_attached_, true)) {
    const auto rank = static_cast<std::size_t>(*attached.begin());
    Say("ddlrun: somebody is attached to rank " + std::to_string(rank) + " on " +
        (rank < options_.hosts.size() ? options_.hosts[rank] : "") +
        ": --hang-after and --end-limit wait until that is over");
  }
}

Sent JobSupervisor::SentToAll() const {
  if (state_ == State::kKilled) return Sent::kSigkill;
  return HasRunningRanks() ? Sent::kNothing : Sent::kSigterm;
}

void JobSupervisor::RecordEnd(const JobChild& child, const siginfo_t& info, Sent sent) {
  const RankFailure end = FailureOf(child.rank, options_.hosts, info, SecondsSinceStart());
  if (launcher().is_direct) {
    ended_.insert(child.rank);
    attached_.erase(child.rank);
    HandleAttachment();
    if (end.exit_code != 0) exit_codes_.emplace(child.rank, end.exit_code);
    for (const auto& watcher : options_.watchers) watcher->OnEvent(*this, Event::kEnd);
  }
  if (end.exit_code == 0) return;
  if (launcher().makes_step && end.signal != 0) has_lost_srun_ = true;
  AddEnd(launcher(), end, sent, &result_);
  if (end.exit_code != EX_TEMPFAIL) EndChildren();
}

JobResult JobSupervisor::Result() {
  JobResult result = result_;
  if (launcher().is_direct) {
    // The last lines of the rank may have been read only after its end was seen.
    if (result.failure) {
      children_.AddLastLines(&*result.failure);
      std::array<char, 200> memory = {};
      support::DescribeMemoryKills(kills_before_, support::ReadMemoryKills(""), memory.data(),
                                   memory.size());
      if (memory[0] != '\0') result.failure->last_lines.emplace_back(memory.data());
    }
  } else {
    if (is_abandoned_) result.exit_code = events_.exit_code_of_gone();
    AddEvents(events_, launcher(), options_.hosts, CanReport(), &result);
  }
  if (result.own_end) {
    result.cancelled.reset();  // Slurm has not done that by itself then
    result.failure.reset();    // no rank is to blame
    result.exit_code = result.own_end->exit_code;
  }
  if (IsBeforeStart() || was_killed_before_start_) SetBeforeStart(&result);
  if (launcher().makes_step) AddSilentNodes(events_, options_.hosts, &result);
  for (const auto& watcher : options_.watchers) watcher->OnEnd(*this, &result);
  if (result.own_end) result.exit_code = result.own_end->exit_code;
  for (std::string& note : output_.Notes()) result.notes.push_back(std::move(note));
  return result;
}

namespace {

// Besides the pipes and logs of ranks: those of the watchers, and while a child is started.
constexpr std::size_t kOtherFiles = 16;

}  // namespace

JobResult Supervise(const std::vector<ChildCommand>& commands, const SupervisorOptions& options,
                    SignalRelay& signals) {
  JobSupervisor supervisor(options, signals);
  if (!commands.empty() && commands.front().launcher->is_direct) {
    ReserveOpenFiles(
        commands.size() * (options.log_directory.empty() ? 2 : 3) + kOtherFiles,
        "the pipes" + std::string(options.log_directory.empty() ? "" : " and logs") + " of " +
            support::Counted(static_cast<long long>(commands.size()), "rank") + " on one machine");
  }
  for (const ChildCommand& command : commands) supervisor.Start(command);
  return supervisor.Run();
}

}  // namespace launcher
