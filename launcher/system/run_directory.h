// SPDX-License-Identifier: Apache-2.0
//
// The private directory of one job on this node: mode 0700, of this user, made by mkdtemp.  Local
// ranks meet in it.

#pragma once

#include <string>

#include "launcher/base/environment.h"

namespace launcher {

// The name of a run directory; mkdtemp puts letters in place of the X.
inline constexpr char kRunDirectoryName[] = "ddlrun.XXXXXX";

// Files in it.
inline constexpr char kRunLogName[] = "ddlrun.log";
inline constexpr char kPlanFileName[] = "plan.json";
inline constexpr char kRankfileName[] = "RANKFILE";  // Open MPI's
inline constexpr char kHostfileName[] = "HOSTFILE";  // Open MPI's
inline constexpr char kTaskfileName[] = "TASKFILE";  // the host of each rank, for srun

// The first of $SLURM_TMPDIR, $TMPDIR, $XDG_RUNTIME_DIR that is an absolute path of a directory
// this user may write, else /tmp, or /dev/shm where that cannot be written.
std::string RunDirectoryBase(const Environment& environment);

class RunDirectory {
 public:
  // Makes <base>/ddlrun.XXXXXX.  Unless `keep`, it first removes those in `base` that this user has
  // on this node and whose ddlrun is gone: a job that Slurm ends is killed with all that is in its
  // control group, and nobody is left to clean up.  Throws LaunchError(EX_OSERR) naming `base`.
  RunDirectory(const std::string& base, bool keep);
  // Removes it with all it holds, unless `keep`.
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::string& path() const { return path_; }

  // Adds `text` to the end of a file in it.  Throws LaunchError(EX_OSERR).
  void Append(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
  bool keep_;
  int mark_ = -1;  // see run_directory.cc
};

}  // namespace launcher
