// SPDX-License-Identifier: Apache-2.0
//
// How a job ended, as the supervisor saw it.

#pragma once

#include <csignal>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/launch/launcher.h"
#include "launcher/supervise/failure_report.h"
#include "launcher/supervise/rank_event_parser.h"

namespace launcher {

// Why ddlrun itself has ended a job of which no rank had failed.
struct OwnEnd {
  enum class Kind {
    kHung,          // ranks do not go on, or do not end; a node that was lost is the better reason
    kStartHung,     // not all ranks have started in time
    kRejected,      // the ranks cannot start on these nodes; `text` is the error
    kClosedOutput,  // nobody reads the output any more
  };
  Kind kind = Kind::kHung;
  int exit_code = 0;  // of the job
  std::string text;   // "its end hung: ...", without a line end
};

struct JobResult {
  // That of the first child that failed (128 + n where signal n ended it); 0 when all succeeded.
  int exit_code = 0;
  std::optional<RankFailure> failure;   // empty on success, and when mpirun itself failed
  std::vector<std::string> lost_nodes;  // which are gone, as srun or mpirun says
  bool stop_requested = false;          // ddlrun was sent SIGTERM, SIGINT or SIGHUP
  int stop_signal = 0;                  // that signal, if it came before any failure or end
  std::optional<OwnEnd> own_end;        // there is no failure then
  // Why Slurm ended the step before any failure: " DUE TO TIME LIMIT", or "" after scancel. nullopt
  // where it did not.
  std::optional<std::string> cancelled;
  std::string rank_rejection;  // RankEventParser::rejection
  std::string error_line;      // ErrorLineOf of what srun, mpirun or ranks have said last
  // "srun was ended by signal 9 (Killed)", where somebody else did so before any rank failed;
  // "mpirun ended by itself, with exit code 1", where no rank is known to have failed.
  std::string launcher_end;
  bool launcher_has_given_up = false;       // the latter
  std::vector<std::string> launcher_lines;  // then: its last ones
  std::string launcher_advice;              // then: what to look at that these do not name
  // "rank 1 on n2": of an mpirun that ended with 0, of whose other ranks an end was reported.
  std::vector<std::string> unresponsive;
  bool is_before_start = false;  // no program of any rank of srun or mpirun has run
  bool has_started = false;      // the program of every rank of srun or mpirun has run
  bool notified_of_end = false;  // the ranks got a signal, since the time of the job ends
  // After a failure: nodes that may be gone, since no end of a rank was reported from them, while
  // it was from others.
  std::vector<std::string> silent_nodes;
  // What the GPUs have taken, and on how many nodes that was measured.
  double joules = 0;
  int measured_nodes = 0;
  bool step_is_left = false;       // Slurm could not end the step, which still holds its resources
  std::vector<std::string> notes;  // lines for the user, without "ddlrun: " and line end
};

// What ddlrun had sent to all children when the end of one was seen.
enum class Sent { kNothing, kSigterm, kSigkill };

// Counts the end of a child of `launcher` that did not end well.  Of ranks the first one is the
// failure, unless a later end is the cause (IsEarlierCause).  A rank may crash at SIGTERM, which
// makes it no cause; SIGKILL is then somebody else's, until ddlrun sends it.  Where ddlrun was
// requested to stop, the first one stays.  Pure.
void AddEnd(const LauncherTraits& launcher, const RankFailure& end, Sent sent, JobResult* result);

// Adds what the shims and the program of `launcher` have said about the ranks, whose nodes are
// `hosts`.  `have_responded`: every rank has a shim, and what it says comes here.  Where no
// rank has failed then, an exit code of srun or mpirun is its own: EX_UNAVAILABLE is that of the
// job.  Pure.
void AddEvents(const RankEventParser& reports, const LauncherTraits& launcher,
               const std::vector<std::string>& hosts, bool have_responded, JobResult* result);

// No program of any rank of srun or mpirun has run, or none had when the job was killed: the codes
// with which these end then, mpirun even with 0, are of no rank.  Pure.
void SetBeforeStart(JobResult* result);

// Adds the nodes of which no end of a rank was reported, if srun has failed.  Pure.
void AddSilentNodes(const RankEventParser& reports, const std::vector<std::string>& hosts,
                    JobResult* result);

// The failure of a rank that is a child of ddlrun.  Pure.
RankFailure FailureOf(int rank, const std::vector<std::string>& hosts, const siginfo_t& end,
                      double seconds);

// "rank 1 on n2" for each rank that is not in `ended`.  Pure.
std::vector<std::string> RanksNotEnded(const std::vector<std::string>& hosts,
                                       const std::set<int>& ended);

// The nodes from which no end of a rank was reported, while it was from others: each once, in the
// order of its first rank.  None where no node has reported any, since the nodes are then not the
// reason.  `hosts_with_ends` are the nodes that have, as srun writes them: "n[1-2]", with or
// without their domain.  Pure.
std::vector<std::string> SilentNodes(const std::vector<std::string>& hosts,
                                     const std::set<std::string>& hosts_with_ends);

// The first eight of them: "n1, n2, ...".  Pure.
std::string SomeOf(const std::vector<std::string>& names);

}  // namespace launcher
