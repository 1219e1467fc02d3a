// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/rank_event_parser.h"

#include <algorithm>
#include <csignal>

#include "launcher/base/error.h"
#include "launcher/launch/mpirun_lines.h"
#include "launcher/slurm/srun_lines.h"
#include "launcher/supervise/failure_cause.h"
#include "support/number.h"

namespace launcher {
namespace {

// How the lines begin by which shims, and ddlrun-rank-check, refuse to start a rank.
constexpr std::string_view kRejection = "ddlrun-rank: [ERROR DDL-";

RankEventParser::Event StepEvent(std::optional<StepCreation> creation) {
  if (!creation) return RankEventParser::Event::kNone;
  return *creation == StepCreation::kWaiting ? RankEventParser::Event::kWaiting
                                             : RankEventParser::Event::kGranted;
}

}  // namespace

RankEventParser::Reading RankEventParser::Read(std::string_view line, double seconds) {
  if (IsRemarkOnBinding(line) || IsRemarkOnForwarding(line)) return {"", Event::kNone};
  if (const auto output = WithoutOutputMarks(line, head_)) return ReadOutput(*output, seconds);
  if (const auto found = FindEvent(line, head_)) return ReadEvent(*found, seconds);
  const std::size_t rejection = line.find(kRejection);
  if (rejection != std::string_view::npos && IsLabel(line.substr(0, rejection)) &&
      IsKnownRejection(line.substr(rejection))) {
    return {"", Event::kNone};
  }
  // mpirun frames what it says by lines of nothing else.
  if (line.find_first_not_of("- ") != std::string_view::npos) other_lines_.Add(line);
  ReadAbort(line, seconds);
  std::optional<std::string> host = ParseLostNode(line);
  if (!host) host = ParseLostDaemon(line);
  if (host) {
    lost_nodes_.push_back(*host);
    return {std::nullopt, Event::kLostNode};
  }
  if (const std::optional<std::string> why = ParseCancelled(line)) {
    if (!cancelled_) has_failed_ = has_failed_ || has_ended_task_;
    if (!cancelled_ || cancelled_->empty()) cancelled_ = *why;
  }
  if (IsStepLeft(line)) has_left_step_ = true;
  if (IsFailureOfDaemons(line)) has_lost_daemons_ = true;
  if (const std::optional<RankExit> rank = ParseMpirunNotice(line); rank && !failure_) {
    SetFailure(*rank, seconds);
    return {std::nullopt, Event::kFailure};
  }
  const std::optional<RankExit> task = ParseSrunError(line);
  if (!task) return {std::nullopt, StepEvent(ParseStepCreation(line))};
  has_ended_task_ = true;
  hosts_with_ends_.insert(task->host);
  // What a shim has reported is not replaced, since it says more than this line of srun.
  if (!failure_) SetFailure(*task, seconds);
  const Event event = task->exit_code == EX_TEMPFAIL ? Event::kNone : Event::kFailure;
  if (!ends_.Add(*task, ParseSrunTasks(line))) return {"", event};
  return {std::nullopt, event};
}

// Whether another rank has said the same.
bool RankEventParser::IsKnownRejection(std::string_view text) {
  const std::size_t end = text.find("] ");  // of the code
  if (end != std::string_view::npos) text.remove_prefix(end + 2);
  const std::size_t reason = text.starts_with("rank ") ? text.find(": ") : std::string_view::npos;
  const bool is_known =
      !reasons_.emplace(text.substr(reason == std::string_view::npos ? 0 : reason)).second;
  if (rejection_.empty()) {
    rejection_ = text;
  } else if (is_known && reason != std::string_view::npos) {
    ++repeated_rejections_;
  }
  return is_known;
}

std::string RankEventParser::rejection() const {
  if (repeated_rejections_ == 0) return rejection_;
  return rejection_ + "; " + support::Counted(repeated_rejections_, "other rank") +
         (repeated_rejections_ == 1 ? " says" : " say") + " the same";
}

// MPICH tells its mpiexec of it, or prints it itself.
void RankEventParser::ReadAbort(std::string_view line, double seconds) {
  const std::optional<RankExit> abort = ParseMpichAbort(line);
  if (!abort || abort_) return;
  abort_.emplace();
  static_cast<RankExit&>(*abort_) = *abort;
  abort_->seconds = seconds;
}

// A line of a program, behind which may be the report of its end.
RankEventParser::Reading RankEventParser::ReadOutput(const std::string& line, double seconds) {
  if (const auto found = FindEvent(line, head_)) return ReadEvent(*found, seconds);
  other_lines_.Add(line);
  ReadAbort(line, seconds);
  return {line + "\n", Event::kNone};
}

RankEventParser::Reading RankEventParser::ReadEvent(const LineWithEvent& line, double seconds) {
  const bool is_labelled = IsLabel(line.before);
  EndReading reading = {false, Event::kNone};
  if (const std::optional<std::string> step = ParseStep(line.report)) {
    step_ = *step;
  } else if (const std::optional<int> rank = ParseRankStart(line.report)) {
    started_.insert(*rank);
    reading.event = Event::kStart;
  } else if (const std::optional<int> through = ParseRankSuccess(line.report)) {
    ended_.insert(*through);
    gone_.insert(*through);
    attached_.erase(*through);
    reading.event = Event::kEnd;
  } else if (const std::optional<RankGone> gone = ParseRankGone(line.report)) {
    gone_.insert(gone->rank);
    exit_code_of_gone_ = std::max(exit_code_of_gone_, gone->exit_code);
    reading.event = Event::kGone;
  } else if (const std::optional<RankAttachment> change = ParseAttachment(line.report)) {
    attached_.erase(change->rank);
    if (change->is_attached) attached_.insert(change->rank);
    reading.event = Event::kAttachment;
  } else if (const std::optional<RankEnergy> energy = ParseEnergy(line.report)) {
    joules_.emplace(energy->rank, energy->joules);
  } else if (IsRankStopped(line.report) || IsProcessLeft(line.report)) {
    reading.is_shown = true;
  } else if (const std::optional<int> killed = ParseKilledAlone(line.report)) {
    has_failed_ = true;
    killed_alone_.insert(*killed);
    const auto end = killed_.find(*killed);
    if (end != killed_.end() && failure_ && IsEarlierCause(end->second, *failure_)) {
      SetFailure(end->second, seconds);
    }
  } else if (const std::optional<RankLine> last = ParseRankLine(line.report)) {
    last_lines_[last->rank].Add(last->text);
  } else if (const std::optional<RankExit> end = ParseRankExit(line.report)) {
    reading = ReadEnd(*end, seconds);
  }
  // Text in front of the report was written by the user's program without a line end.  It becomes a
  // line of its own.
  std::string text = is_labelled ? "" : std::string(line.before) + "\n";
  if (reading.is_shown) {
    text += std::string(is_labelled ? line.before : "") + ShownReport(line.report) + "\n";
  }
  return {text, reading.event};
}

RankEventParser::EndReading RankEventParser::ReadEnd(const RankExit& end, double seconds) {
  hosts_with_ends_.insert(end.host);
  ended_.insert(end.rank);
  attached_.erase(end.rank);
  exit_codes_.emplace(end.rank, end.exit_code);
  const bool stopped_early = end.exit_code == EX_TEMPFAIL;
  const bool is_killed = end.signal == SIGKILL;
  has_killed_rank_ = has_killed_rank_ || is_killed;
  if (is_killed) killed_.emplace(end.rank, end);
  has_failed_ = has_failed_ || (!stopped_early && !is_killed);
  const bool is_better = !failure_ || (failure_->pid == 0 && failure_->rank == end.rank) ||
                         (failure_->exit_code == EX_TEMPFAIL && !stopped_early) ||
                         IsEarlierCause(end, *failure_);
  if (is_better) SetFailure(end, seconds);
  // The last lines of this rank came before its end, and only those of the first failure are
  // needed, which a killed one may turn out to be.
  if (end.rank != failure_->rank && !is_killed) last_lines_.erase(end.rank);
  return stopped_early ? EndReading{false, Event::kEnd}
                       : EndReading{ends_.Add(end), Event::kFailure};
}

// Clocks that say nothing leave the first report as it is.
bool RankEventParser::IsEarlierCause(const RankExit& end, const RankExit& known) const {
  return end.time > 0 && known.time > 0 &&
         launcher::IsEarlierCause(end, known, end.time - known.time, killed_alone_);
}

void RankEventParser::SetFailure(const RankExit& end, double seconds) {
  failure_.emplace();
  static_cast<RankExit&>(*failure_) = end;
  failure_->seconds = seconds;
}

std::optional<RankFailure> RankEventParser::failure() const {
  std::optional<RankFailure> failure = failure_;
  if (failure) {
    failure->others = ends_.Text();
    failure->may_be_of_cancel = cancelled_ && !has_failed_;
  }
  const auto lines = failure ? last_lines_.find(failure->rank) : last_lines_.end();
  if (lines != last_lines_.end()) failure->error_line = ErrorLineOf(lines->second);
  // A rank that was refused has printed nothing.
  if (failure && rejection_.starts_with("rank " + std::to_string(failure->rank) + " on ")) {
    failure->error_line = rejection().substr(rejection_.find(": ") + 2);
  }
  if (lines != last_lines_.end() && !other_lines_.EndsWith(lines->second)) {
    failure->last_lines.assign(lines->second.lines().begin(), lines->second.lines().end());
  }
  return failure;
}

// A step is also cancelled when a rank has failed: by srun, whose words on tasks then come before,
// or by the PMIx server of Slurm 24.11 as soon as a rank is no more, so that the report of its shim
// may come after.  A shim that is killed with its step reports nothing, unless the kill reaches it
// a moment after its rank: then nobody can tell what came first. When Slurm ends the step by
// SIGTERM, the end of a task may be reported before that; it comes from srun, and not from a shim,
// so that its pid is 0.  Where Slurm names a reason, a shim may just have lived long enough to
// report a rank that Slurm has killed.
std::optional<std::string> RankEventParser::cancelled() const {
  if (!cancelled_ || !lost_nodes_.empty()) return std::nullopt;
  const bool was_ended_by_slurm =
      failure_ && ((failure_->signal == SIGTERM && failure_->pid == 0) ||
                   (failure_->signal == SIGKILL && !cancelled_->empty()));
  const bool may_have_failed = has_failed_ || has_killed_rank_;
  return !may_have_failed || was_ended_by_slurm ? cancelled_ : std::nullopt;
}

}  // namespace launcher
