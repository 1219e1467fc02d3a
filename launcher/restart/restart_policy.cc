// SPDX-License-Identifier: Apache-2.0

#include "launcher/restart/restart_policy.h"

#include <sysexits.h>

#include "support/number.h"

namespace launcher {
namespace {

using Next = Decision::Next;

Decision End(const std::string& reason) { return {Next::kEnd, 0, reason}; }

bool IsMistake(const RunOutcome& end) {
  return end.exit_code == EX_USAGE || end.exit_code == EX_DATAERR || end.exit_code == EX_CONFIG ||
         (end.exit_code == EX_UNAVAILABLE && !end.has_lost_node && !end.has_started &&
          !end.start_hung);
}

// In what this run has made no progress, in words for the user.
std::string NoProgress(const RunOutcome& end) {
  if (end.start_hung) return "its start hung";
  if (!end.checkpoints.empty()) return "no new checkpoint in " + end.checkpoints;
  return end.file_moved ? "nothing in --progress-file became newer"
                        : "shorter than " + std::to_string(static_cast<int>(kSecondsOfProgress)) +
                              " s, and no --progress-file tells better";
}

}  // namespace

Decision RestartPolicy::Requeue(const RunOutcome& end, bool has_progress) const {
  if (!has_progress) {
    return End("not requeued: this run made no progress (" + NoProgress(end) + ")");
  }
  if (limits_.requeued >= *limits_.requeues) {
    return End("not requeued: that was done " + std::to_string(limits_.requeued) +
               " times already (--requeue=" + std::to_string(*limits_.requeues) + ")");
  }
  return {Next::kRequeue, 0, "requeueing the job"};
}

Decision RestartPolicy::AfterRun(const RunOutcome& end) {
  const bool has_progress =
      !end.start_hung && end.file_moved.value_or(end.seconds >= kSecondsOfProgress);
  runs_without_progress_ = has_progress ? 0 : runs_without_progress_ + 1;

  if (end.exit_code == EX_OK || end.stop_requested) return End("");
  if (end.is_preempted && limits_.requeues && !IsMistake(end)) {
    return {Next::kRequeue, 0, "requeueing the job, whose nodes Slurm takes for another one"};
  }
  if (end.exit_code == EX_TEMPFAIL) {
    return limits_.requeues ? Requeue(end, has_progress) : End("");
  }
  const bool is_wanted = limits_.restarts > 0;
  if (IsMistake(end)) {
    return End(is_wanted ? "not started again: exit code " + std::to_string(end.exit_code) +
                               " would come again"
                         : "");
  }
  if (!end.has_nodes && limits_.requeues) return Requeue(end, has_progress);
  if (!is_wanted && end.start_hung && end.has_nodes) {
    if (restarts_ > 0) return End("not started again: the start hung twice");
    ++restarts_;
    return {Next::kRestart, 0, "starting again, once, since the start hung"};
  }
  if (!is_wanted) return End("");
  if (!end.has_nodes && end.min_nodes > 0) {
    return End("not started again: " + support::Counted(end.nodes_left, "node") +
               (end.nodes_left == 1 ? " is" : " are") + " left, and --min-nodes is " +
               std::to_string(end.min_nodes));
  }
  if (!end.has_nodes) {
    return End("not started again: a node was lost and no spare is left (--spare-nodes)");
  }
  if (restarts_ == limits_.restarts) {
    return End("not started again: that was done " + std::to_string(restarts_) +
               (restarts_ == 1 ? " time" : " times") + " already (--max-restarts)");
  }
  if (runs_without_progress_ >= kMaxRunsWithoutProgress) {
    return End("not started again: " + std::to_string(runs_without_progress_) +
               " runs in a row made no progress (" + NoProgress(end) + ")");
  }
  if (end.is_near_end) {
    return limits_.requeues ? Requeue(end, has_progress)
                            : End("not started again: the job's time ends too soon for "
                                  "--stop-before");
  }
  if (end.seconds_left.value_or(kSecondsOfProgress) < kSecondsOfProgress) {
    return limits_.requeues ? Requeue(end, has_progress)
                            : End("not started again: the time limit of the job is " +
                                  std::to_string(static_cast<int>(*end.seconds_left)) + " s away");
  }
  ++restarts_;
  const auto idle = static_cast<std::size_t>(runs_without_progress_);
  const int pause = idle == 0 ? 0 : kPauses.at(idle - 1);
  return {Next::kRestart, pause,
          "starting again" + (pause == 0 ? "" : " in " + std::to_string(pause) + " s") +
              ", restart " + std::to_string(restarts_) + " of " + std::to_string(limits_.restarts)};
}

}  // namespace launcher
