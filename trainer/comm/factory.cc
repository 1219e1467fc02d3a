// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/factory.h"

#include "launcher/protocol/launchers.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/mpi_communicator.h"
#include "trainer/comm/shared_memory.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using launcher::LauncherTraits;
using launcher::OpenMpi;
using launcher::TraitsOf;

void CheckStarter(const CommOptions& options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    throw Error(EX_CONFIG, "rank " + std::to_string(options.rank) + " of " +
                               std::to_string(options.size) + " ranks makes no sense");
  }
  if (options.started_tasks > 0 && options.started_tasks != options.size) {
    throw Error(EX_CONFIG,
                "this program was started " + std::to_string(options.started_tasks) +
                    " times (OMPI_COMM_WORLD_SIZE or SLURM_STEP_NUM_TASKS), but WORLD_SIZE says " +
                    std::to_string(options.size) +
                    ": each would train on its own; put ddlrun in front of it instead");
  }
}

// By MPI without PMIx every rank would be a world of its own.
[[noreturn]] void RejectWithoutMpi(const CommOptions& options, const LauncherTraits& launcher) {
  const std::string ranks = std::to_string(options.size) + " ranks";
  if (launcher.open_mpi == OpenMpi::kNever) {
    throw Error(EX_UNAVAILABLE, "ddltraind is of Open MPI, whose ranks " +
                                    std::string(launcher.program) +
                                    " of another MPI cannot make one world of: the " + ranks +
                                    " must be on the node that ddlrun runs on; use ddlrun "
                                    "--launcher=mpirun with Open MPI, or --launcher=srun");
  }
  throw Error(
      EX_UNAVAILABLE,
      "srun started the " + ranks + " with --mpi=" + options.pmi +
          ", and ddltraind needs PMIx to meet over several nodes: use ddlrun "
          "--launcher=mpirun, or ask your admin for Slurm's PMIx plug-in ('srun --mpi=list' "
          "then names pmix); ranks on the node that ddlrun runs on need neither");
}

std::unique_ptr<Communicator> MeetInRunDirectory(const CommOptions& options) {
  if (options.run_dir.empty()) {
    throw Error(EX_CONFIG, "DDLRUN_RUN_DIR is not set: ranks started by ddlrun itself meet there");
  }
  if (options.size > kMaxLocalRanks) {
    throw Error(EX_CONFIG, std::to_string(options.size) + " ranks on one machine are more than " +
                               std::to_string(kMaxLocalRanks) + "; start fewer");
  }
  return MakeSharedMemoryCommunicator(options);
}

}  // namespace

std::unique_ptr<Communicator> MakeCommunicator(const CommOptions& options) {
  CheckStarter(options);
  if (options.size == 1) return MakeSingleCommunicator();
  const LauncherTraits& launcher = TraitsOf(options.launcher.c_str());
  if (*launcher.name == '\0') {
    throw Error(EX_CONFIG, "WORLD_SIZE says " + std::to_string(options.size) +
                               " ranks, but DDLRUN_LAUNCHER '" + options.launcher +
                               "' does not say how they meet; start them with ddlrun -n " +
                               std::to_string(options.size));
  }
  const bool has_mpi =
      launcher.open_mpi == OpenMpi::kAlways ||
      (launcher.open_mpi == OpenMpi::kWithPmix && options.pmi != "none" && options.pmi != "pmi2");
  if (has_mpi) return MakeMpiCommunicator(options);
  const bool can_share_memory = options.is_one_node && !options.run_dir.empty();
  if (!launcher.is_direct && !can_share_memory) RejectWithoutMpi(options, launcher);
  return MeetInRunDirectory(options);
}

}  // namespace trainer
