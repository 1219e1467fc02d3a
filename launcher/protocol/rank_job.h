// SPDX-License-Identifier: Apache-2.0
//
// The rank job is what ddlrun tells the shim of every rank: the plan, and how the job was started.
// It travels in environment variables, and so needs no file system that the nodes share
// (doc/decisions/0023-compact-plan-encoding.md).  ddlrun writes it and ddlrun-rank-check reads it
// here; the shim reads only what it needs, by local_rank_job.h.  Pure.

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/placement/launch_plan.h"
#include "launcher/protocol/launchers.h"
#include "launcher/protocol/local_rank_job.h"

namespace launcher {

// Linux passes no longer variable (MAX_ARG_STRLEN is 131072 bytes with the name).  Arguments and
// environment together may have 2 MiB where the stack may have 8 MiB.
inline constexpr std::size_t kMaxRankJobChunkBytes = 131000;
inline constexpr std::size_t kMaxRankJobBytes = kMaxRankJobChunks * kMaxRankJobChunkBytes;

// A command that some ranks are started under (--wrap).
struct RankWrap {
  std::string ranks;               // a list of ranks (rank_list.h)
  std::vector<std::string> words;  // of at most kMaxWrapWordBytes; kRankMark in them is the rank
};

struct RankJob {
  LaunchPlan plan;
  bool bind = true;       // the shim binds its rank; false: it leaves the CPUs as they are
  bool check = true;      // the shim counts the node's GPUs; false: it starts the rank anyway
  std::string launcher;   // its name in launchers.h
  std::string pmi;        // of srun: "pmix", "pmi2", "none"; else ""
  std::string event_key;  // of this start (rank_event.h)
  bool pause = false;     // before the program starts; see PmixServersNeedPause
  // The fingerprint (topology/fingerprint.h) of the node that the cores of the plan were chosen on.
  // On a node with another fingerprint they are chosen anew.  "": they hold for every node
  // (--topology); "none": ddlrun could not choose any.
  std::string planned_for;
  std::string run_directory;  // on the node of ddlrun
  std::string log_directory;  // of the ranks' log files; "": none
  // In which the ranks stand, an absolute path; "": in whichever they are started.
  std::string directory;
  std::string master_address;  // host of rank 0
  int master_port = 0;
  int restart_count = 0;
  int grace_ms = 3000;          // how long a rank may take to end once a peer has failed
  bool frames = false;          // the shim says of each line of output whose it is (rank_event.h)
  std::string shown_ranks;      // whose output is seen: a list of ranks (rank_list.h); "": of all
  std::vector<RankWrap> wraps;  // the first is the outermost

  const LauncherTraits& traits() const { return TraitsOf(launcher.c_str()); }
};

// One line of words with single blanks between them:
//
//   ddlrun=VERSION LAUNCHER PMI REPORT_KEY bind=1 check=1 pause=0 cores=0 PLANNED_FOR
//   RUN_DIRECTORY LOG_DIRECTORY DIRECTORY MASTER_ADDRESS MASTER_PORT RESTART_COUNT GRACE_MS
//   frames=0 SHOWN_RANKS NUMBER_OF_WRAPS, for each wrap RANKS NUMBER_OF_WORDS and the words, then
//   the plan (plan_encoding.h)
//
// EscapeToken (plan_encoding.h) makes a word of each text.  Throws LaunchError(EX_CONFIG) for a
// plan that does not fit kMaxRankJobBytes.
std::string EncodeRankJob(const RankJob& job);

// The inverse.  The plan has what a rank needs (see DecodePlan).  Throws LaunchError(EX_CONFIG)
// for a text of another version, and LaunchError(EX_SOFTWARE) for one that EncodeRankJob did not
// write.
RankJob DecodeRankJob(const std::string& text);

// The variables that hold `text`: one, or more where it is too long for one.
std::map<std::string, std::string> RankJobVariables(const std::string& text);

// The inverse; "" where there is no such variable.
std::string RankJobText(const Environment& environment);

}  // namespace launcher
