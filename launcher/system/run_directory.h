// SPDX-License-Identifier: Apache-2.0
//
// The private directory of one ddlrun on its node, with mode 0700.  It holds the log and the files
// that srun and mpirun read, and ranks of this node may meet in it.

#pragma once

#include <string>

#include "launcher/base/environment.h"
#include "support/descriptor.h"

namespace launcher {

// The name of a run directory; mkdtemp puts letters instead of the X.
inline constexpr char kRunDirectoryName[] = "ddlrun.XXXXXX";

// The files in it.
inline constexpr char kRunLogName[] = "ddlrun.log";
inline constexpr char kPlanFileName[] = "plan.json";
inline constexpr char kRankfileName[] = "RANKFILE";        // in Open MPI's form
inline constexpr char kHostfileName[] = "HOSTFILE";        // in Open MPI's form
inline constexpr char kMachinefileName[] = "MACHINEFILE";  // in MPICH's form
inline constexpr char kWhyFileName[] = "why.json";         // what `ddlctl why` saw last
inline constexpr char kTaskfileName[] = "TASKFILE";        // the host of each rank, for srun

// The first of $SLURM_TMPDIR, $TMPDIR, $XDG_RUNTIME_DIR that is an absolute path of a directory
// this user may write and in which others cannot replace what is this user's (the sticky bit), else
// /tmp, or /dev/shm where that cannot be written.
std::string RunDirectoryBase(const Environment& environment);

class RunDirectory {
 public:
  // Makes <base>/ddlrun.XXXXXX.  Unless `keep`, it first removes the run directories in `base` that
  // another ddlrun of this user has left behind on this node: when Slurm ends a job it kills all
  // processes in its control group, and nobody is left to clean up.  Throws LaunchError(EX_OSERR)
  // that names `base`, and LaunchError(EX_CONFIG) where every user may replace what is in `base`.
  RunDirectory(const std::string& base, bool keep);
  // Removes it with all it holds, unless `keep`, and what its ranks on this node have left in
  // shared memory.
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::string& path() const { return path_; }

  // Adds `text` to the end of a file in it.  Throws LaunchError(EX_OSERR).
  void Append(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
  bool keep_;
  support::Descriptor directory_;
  support::Descriptor mark_;  // the file that tells others that this ddlrun runs; none if kept
};

}  // namespace launcher
