// SPDX-License-Identifier: Apache-2.0
//
// What ddlrun tells the shim of every rank: the plan and how the job was started, as environment
// variables, so that it reaches other nodes without a shared file system
// (doc/decisions/0023-plan-as-a-pattern.md).  Pure.  The shim itself reads only what it needs
// (launcher/protocol/own_job.h).

#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "launcher/base/environment.h"
#include "launcher/plan/plan.h"
#include "launcher/protocol/own_job.h"

namespace launcher {

// Linux passes no longer variable (MAX_ARG_STRLEN is 131072 bytes with the name), and has room for
// 2 MiB of arguments and environment together where the stack may be 8 MiB.
inline constexpr std::size_t kMaxRankJobPartBytes = 131000;
inline constexpr std::size_t kMaxRankJobBytes = kMaxRankJobParts * kMaxRankJobPartBytes;

struct RankJob {
  Plan plan;
  bool bind = true;        // the shim binds; false: the ranks stay where the spawner put them
  bool check = true;       // the shim counts the node's GPUs; false: it starts the rank anyway
  std::string spawner;     // "srun", "mpirun", "local"
  std::string pmi;         // of srun: "pmix", "pmi2", "none"; else ""
  std::string report_key;  // of this start (launcher/protocol/rank_report.h)
  bool pause = false;      // before the program starts; see PmixServersNeedPause
  // TopologyFingerprint of the machine that the plan's cores were chosen for.  "": they hold for
  // every node (--topology); "none": there are none yet.  On a node with another one the shim
  // chooses them itself.
  std::string planned_for;
  std::string run_directory;   // on the node of ddlrun
  std::string log_directory;   // of the ranks' log files; "": none
  std::string master_address;  // host of rank 0
  int master_port = 0;
  int restart_count = 0;
};

// One line of words with single spaces between them:
//   SPAWNER PMI REPORT_KEY bind=1 check=1 pause=0 cores=0 PLANNED_FOR RUN_DIRECTORY LOG_DIRECTORY
//   MASTER_ADDRESS MASTER_PORT RESTART_COUNT, then the plan (plan_words.h)
// Texts are written as words.h has it.  Throws LaunchError(EX_CONFIG) for a plan that does not fit
// kMaxRankJobBytes.
std::string EncodeRankJob(const RankJob& job);

// The inverse; the plan has what a rank needs (DecodePlan).
// Throws LaunchError(EX_SOFTWARE) for a text that EncodeRankJob did not write.
RankJob DecodeRankJob(const std::string& text);

// The variables that hold `text`, one where that is long enough.
std::map<std::string, std::string> RankJobVariables(const std::string& text);

// The inverse; "" where there is no such variable.
std::string RankJobText(const Environment& environment);

}  // namespace launcher
