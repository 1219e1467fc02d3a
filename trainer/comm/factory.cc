// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/factory.h"

#include "trainer/comm/mpi_communicator.h"
#include "trainer/comm/shared_memory.h"
#include "trainer/comm/single.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

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

}  // namespace

std::unique_ptr<Communicator> MakeCommunicator(const CommOptions& options) {
  CheckStarter(options);
  if (options.size == 1) return MakeSingleCommunicator();
  if (options.spawner == "mpirun" || options.spawner == "srun") return MakeMpiCommunicator(options);
  if (options.spawner == "local") {
    if (options.run_dir.empty()) {
      throw Error(EX_CONFIG,
                  "DDLRUN_RUN_DIR is not set: ranks started by ddlrun's local spawner meet there");
    }
    if (options.size > kMaxLocalRanks) {
      throw Error(EX_CONFIG, std::to_string(options.size) + " ranks on one machine are more than " +
                                 std::to_string(kMaxLocalRanks) + "; start fewer");
    }
    return MakeSharedMemoryCommunicator(options);
  }
  throw Error(EX_CONFIG, "WORLD_SIZE says " + std::to_string(options.size) +
                             " ranks, but DDLRUN_SPAWNER '" + options.spawner +
                             "' does not say how they meet; start them with ddlrun -n " +
                             std::to_string(options.size));
}

}  // namespace trainer
