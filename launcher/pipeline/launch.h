// SPDX-License-Identifier: Apache-2.0
//
// The third step of the pipeline: with what the ranks of a plan are started.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/cli/options.h"
#include "launcher/cli/settings.h"
#include "launcher/launch/launcher.h"
#include "launcher/pipeline/planned_job.h"
#include "launcher/slurm/slurm_version.h"
#include "launcher/system/child_process.h"

namespace launcher {

// How the ranks will be started.
struct Launch {
  LauncherChoice choice;                       // its reason is "" when the user has chosen it
  std::string mpirun, srun;                    // paths, "" for none
  bool mpirun_lacks_srun = false;              // which it would ask to reach nodes of the job
  SlurmVersion slurm = kNewestSlurm;           // only set where it matters
  MpiRuntime mpi_runtime = MpiRuntime::kOrte;  // that of mpirun, if it is the choice
};

// Questions to srun that it answers while ddlrun reads the topology.  Null where it is not asked.
struct SrunQuestions {
  std::unique_ptr<CommandOutput> mpi_list;
  std::unique_ptr<CommandOutput> version;  // asked where PMIx may be used over several nodes
};

// Starts `srun --mpi=list` and `srun --version`.  Each takes as long as reading the topology, so
// that they run at the same time.  Starts nothing where srun cannot be the choice or is not in
// PATH.  Throws LaunchError as CommandOutput does.
SrunQuestions QuerySrun(const Options& options, const Settings& settings,
                        const Environment& environment);

// Starts `mpirun --version` where mpirun is likely to be the choice; otherwise null.
std::unique_ptr<CommandOutput> QueryMpirunEarly(const Options& options, const Settings& settings,
                                                const Environment& environment);

// Decides what `auto` stands for, and makes sure that the choice is there: srun with the PMI that
// is wanted, or Open MPI's mpirun.  `questions` are those of QuerySrun, `mpirun_version` that of
// QueryMpirunEarly.  Throws LaunchError(EX_USAGE, EX_UNAVAILABLE, EX_CONFIG).
Launch ChooseLaunch(const Options& options, const Settings& settings, const PlannedJob& planned,
                    const Environment& environment, const SrunQuestions& questions,
                    std::unique_ptr<CommandOutput> mpirun_version);

}  // namespace launcher
