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
#include "launcher/pipeline/planned_job.h"
#include "launcher/slurm/slurm_version.h"
#include "launcher/spawn/spawner.h"
#include "launcher/system/command_output.h"

namespace launcher {

// How the ranks will be started.
struct Launch {
  SpawnerChoice choice;                        // and why, "" when it was asked for
  std::string mpirun, srun;                    // paths, "" for none
  SlurmVersion slurm = kNewestSlurm;           // where that matters
  MpiRuntime mpi_runtime = MpiRuntime::kOrte;  // of mpirun, where that is the choice
};

// What srun says about itself, while ddlrun reads the topology; null where it is not asked.
struct SrunQuestions {
  std::unique_ptr<CommandOutput> mpi_list;
  std::unique_ptr<CommandOutput> version;  // where PMIx may meet over several nodes
};

// Starts `srun --mpi=list` and `srun --version`, which take as long as reading the topology, so
// that all run at once.  Nothing where srun is no choice or not in PATH.  Throws LaunchError as
// CommandOutput does.
SrunQuestions AskSrun(const Options& options, const Settings& settings,
                      const Environment& environment);

// Starts `mpirun --version` where mpirun is likely to be needed.
std::unique_ptr<CommandOutput> AskMpirunEarly(const Options& options, const Settings& settings,
                                              const Environment& environment);

// Resolves `auto` and looks for srun, its PMI (`questions`: of AskSrun), and Open MPI's mpirun
// (`mpirun_version`: of AskMpirunEarly).  Throws LaunchError(EX_UNAVAILABLE, EX_CONFIG).
Launch ChooseLaunch(const Options& options, const Settings& settings, const PlannedJob& planned,
                    const Environment& environment, const SrunQuestions& questions,
                    std::unique_ptr<CommandOutput> mpirun_version);

}  // namespace launcher
