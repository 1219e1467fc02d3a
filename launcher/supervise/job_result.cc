// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/job_result.h"

#include <algorithm>
#include <cstddef>

#include "launcher/allocation/host_index.h"
#include "launcher/base/error.h"
#include "launcher/launch/mpirun_lines.h"
#include "launcher/supervise/failure_cause.h"
#include "rankfile/hostlist.h"
#include "rankfile/scanner.h"

namespace launcher {

namespace {

bool IsCause(const RankFailure& end, Sent sent, const JobResult& result) {
  const bool is_by_itself =
      sent == Sent::kNothing || (sent == Sent::kSigterm && end.signal == SIGKILL);
  if (!result.failure || result.stop_requested || !is_by_itself) return false;
  const RankFailure& known = *result.failure;
  return IsEarlierCause(end, known, end.seconds - known.seconds, {end.rank, known.rank});
}

}  // namespace

void AddEnd(const LauncherTraits& launcher, const RankFailure& end, Sent sent, JobResult* result) {
  const bool stopped_early = end.exit_code == EX_TEMPFAIL;
  const bool counts = result->exit_code == EX_OK ||
                      (result->exit_code == EX_TEMPFAIL && !stopped_early) ||
                      (launcher.is_direct && IsCause(end, sent, *result));
  if (!counts) return;
  result->exit_code = end.exit_code;
  if (launcher.is_direct) {
    result->failure = end;
  } else if (end.signal != 0 && sent == Sent::kNothing && !result->stop_requested) {
    result->launcher_end = std::string(launcher.program) + " was ended by " + DescribeEnd(end);
  }
}

namespace {

// An end of srun or mpirun that no rank explains.
void AddOwnEnd(const RankEventParser& reports, const LauncherTraits& launcher,
               const std::vector<std::string>& hosts, JobResult* result) {
  const bool is_explained = result->failure || result->cancelled || result->stop_requested ||
                            !result->lost_nodes.empty() || !result->launcher_end.empty() ||
                            !reports.rejection().empty();
  if (is_explained) return;
  if (result->exit_code != 0) {
    result->launcher_end = std::string(launcher.program) + " ended by itself, with exit code " +
                           std::to_string(result->exit_code);
    result->launcher_has_given_up = true;
    const auto& lines = reports.other_lines().lines();
    result->launcher_lines.assign(lines.begin(), lines.end());
    if (std::any_of(lines.begin(), lines.end(), IsFailedStartOfDaemon)) {
      result->launcher_advice =
          "if the network is well, see with 'ls -ld /tmp/ompi.*' on each node whether another user "
          "has /tmp/ompi.HOST.UID";
    }
    // By MPI_Abort, of which its program says nothing itself; 255 is a failure of its own.
    if (launcher.hides_exit_codes && reports.has_begun() && result->exit_code != 255) return;
  } else if (launcher.has_daemons && reports.has_begun()) {
    // Open MPI 4.1.4 ends with 0 after the death of a node.
    result->unresponsive = RanksNotEnded(hosts, reports.ended());
    if (result->unresponsive.empty()) return;
  } else {
    return;
  }
  result->exit_code = EX_UNAVAILABLE;
}

}  // namespace

void AddEvents(const RankEventParser& reports, const LauncherTraits& launcher,
               const std::vector<std::string>& hosts, bool have_responded, JobResult* result) {
  result->has_started = !hosts.empty() && reports.started().size() == hosts.size();
  result->lost_nodes = reports.lost_nodes();
  result->failure = reports.failure();
  result->rank_rejection = reports.rejection();
  result->error_line = ErrorLineOf(reports.other_lines());
  if (launcher.hides_exit_codes && result->exit_code == EX_OK) {
    result->exit_code = reports.exit_code_of_gone();
  }
  const bool has_aborted = launcher.hides_exit_codes && result->exit_code != 0 && reports.abort();
  if (has_aborted && !result->failure && !result->stop_requested) {
    result->failure = reports.abort();
    const auto rank = static_cast<std::size_t>(result->failure->rank);
    if (rank < hosts.size()) result->failure->host = hosts[rank];
  }
  // With these causes mpirun of Open MPI 5.0.7 and 6.0.0rc2 ends with 0.
  const bool has_lost_ranks = !result->lost_nodes.empty() || reports.has_lost_daemons();
  if (launcher.has_daemons && result->exit_code == 0 && has_lost_ranks) {
    result->exit_code = EX_UNAVAILABLE;
  }
  for (const auto& [rank, joules] : reports.joules()) {
    result->joules += joules;
    ++result->measured_nodes;
  }
  result->cancelled = reports.cancelled();
  // srun and mpirun may end as a rank that they have killed; where ranks stopped early, with 0, and
  // so does an mpirun that is not to abort then (orte_abort_on_non_zero_status).
  if (result->failure) result->exit_code = result->failure->exit_code;
  if (have_responded) AddOwnEnd(reports, launcher, hosts, result);
}

void SetBeforeStart(JobResult* result) {
  result->is_before_start = true;
  if (!result->launcher_end.empty()) result->exit_code = EX_UNAVAILABLE;
  if (result->stop_signal != 0) result->exit_code = 128 + result->stop_signal;
}

void AddSilentNodes(const RankEventParser& reports, const std::vector<std::string>& hosts,
                    JobResult* result) {
  const bool is_unread = result->own_end && result->own_end->kind == OwnEnd::Kind::kClosedOutput;
  if (result->exit_code == 0 || is_unread) return;
  std::set<std::string> ends = reports.hosts_with_ends();
  for (const std::set<int>& ranks : {reports.ended(), reports.gone()}) {
    for (const int rank : ranks) {
      const auto index = static_cast<std::size_t>(rank);
      if (index < hosts.size()) ends.insert(hosts[index]);
    }
  }
  result->silent_nodes = SilentNodes(hosts, ends);
}

RankFailure FailureOf(int rank, const std::vector<std::string>& hosts, const siginfo_t& end,
                      double seconds) {
  RankFailure failure;
  failure.rank = rank;
  const auto index = static_cast<std::size_t>(rank);
  if (rank >= 0 && index < hosts.size()) failure.host = hosts[index];
  failure.pid = end.si_pid;
  failure.signal = end.si_code == CLD_EXITED ? 0 : end.si_status;
  failure.exit_code = failure.signal == 0 ? end.si_status : 128 + failure.signal;
  failure.seconds = seconds;
  return failure;
}

std::vector<std::string> RanksNotEnded(const std::vector<std::string>& hosts,
                                       const std::set<int>& ended) {
  std::vector<std::string> ranks;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (ended.contains(static_cast<int>(rank))) continue;
    ranks.push_back("rank " + std::to_string(rank) + " on " + hosts[rank]);
  }
  return ranks;
}

namespace {

std::vector<std::string> Expanded(const std::string& hosts) {
  try {
    return rankfile::ExpandHostlist(hosts);
  } catch (const rankfile::ParseError&) {
    return {};
  }
}

}  // namespace

std::vector<std::string> SilentNodes(const std::vector<std::string>& hosts,
                                     const std::set<std::string>& hosts_with_ends) {
  HostIndex known;
  for (const std::string& names : hosts_with_ends) {
    for (const std::string& host : Expanded(names)) known.Add(host);
  }
  std::vector<std::string> nodes;
  if (known.IsEmpty()) return nodes;
  for (const std::string& host : hosts) {
    if (known.Holds(host)) continue;
    known.Add(host);
    nodes.push_back(host);
  }
  return nodes;
}

std::string SomeOf(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxNames = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNames); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return text + (names.size() > kMaxNames ? ", ..." : "");
}

}  // namespace launcher
