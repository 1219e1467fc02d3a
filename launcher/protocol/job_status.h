// SPDX-License-Identifier: Apache-2.0
//
// What ddlrun knows of its job while it runs, as the file `status` in its run directory, which
// ddlctl reads.  The file is replaced as a whole.  Pure.
//
//   ddlrun-status 2
//   job ID HOST PID LAUNCHER RESTARTS PROGRAM
//   times WRITTEN STARTED ENDS                      seconds since 1970, "-" for not known
//   cost PROGRESS RESTARTS WALL UNSAVED PART... ENERGY LOST LACKS
//                                                   seconds, in the order of CostParts(), and
//                                                   joules; LACKS is 0 or 1; not in version 1, and
//                                                   only where it is known
//   rank HOST STATE CODE SILENCE                    from 0 on; SILENCE in seconds
// Texts are words as plan_encoding.h encodes them.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cost/run_cost.h"

namespace launcher {

inline constexpr char kStatusFileName[] = "status";
// What it begins with in every version, and the number behind that; doc/formats.md says when it is
// raised.
inline constexpr char kStatusBeginning[] = "ddlrun-status ";
inline constexpr int kStatusFormat = 2;
// Of 65,536 ranks with long names.
inline constexpr std::size_t kMaxStatusBytes = 33554432;

struct JobStatus {
  enum class RankState { kStarting, kRunning, kEnded };
  struct Rank {
    std::string host;
    RankState state = RankState::kStarting;
    // Of one that has ended: 128 + n for signal n.
    int exit_code = 0;
    // How long it has not touched the file of --heartbeat; nullopt: there is none of its own.
    std::optional<double> silence;
  };

  std::string job;   // Slurm's number, "" outside Slurm
  std::string host;  // of ddlrun
  int pid = 0;       // of ddlrun
  std::string launcher;
  int restarts = 0;
  std::string program;          // a command line
  double written = 0;           // the file; seconds since 1970, as the others
  double started = 0;           // this start of the ranks
  std::optional<double> ends;   // the time of the job
  std::optional<RunCost> cost;  // of ddlrun until then
  // How long nobody has touched the file of --heartbeat that all ranks share.  Not in the text.
  std::optional<double> silence;
  std::vector<Rank> ranks;
};

std::string FormatJobStatus(const JobStatus& status);
// nullopt for any other text.
std::optional<JobStatus> ParseJobStatus(const std::string& text);

}  // namespace launcher
