// SPDX-License-Identifier: Apache-2.0
//
// Picks the communicator that fits how the ranks were started.

#pragma once

#include <memory>
#include <string>

#include "trainer/comm/communicator.h"
#include "trainer/core/span_recorder.h"

namespace trainer {

// What this rank was told about itself: launcher::RankInfo, and what main found beside it.
struct CommOptions {
  int rank = 0;
  int size = 1;
  std::string launcher;  // its name in launcher/protocol/launchers.h; "" when started by hand
  std::string pmi;       // what srun gave the ranks: "pmix", "pmi2", "none"; "" of other launchers
  bool is_one_node = false;  // all ranks are on one
  std::string run_dir;       // private to the job (0700)
  int restart_count = 0;
  // How many copies of this program the starter says it made: OMPI_COMM_WORLD_SIZE or
  // SLURM_STEP_NUM_TASKS; 0 when neither is set.
  int started_tasks = 0;
  // Open MPI's component that sums within nodes and then between them, the first choice of Open MPI
  // 5, has the last priority (decision 0072).
  bool leaves_out_han = false;
  // How long ranks wait for each other to appear, and then in any one call.
  double rendezvous_seconds = 120;
  double stall_seconds = 1800;
  SpanRecorder* spans = nullptr;  // of sums of gradients in host memory; may be null
};

// size 1: no communication.  Where the launcher lets Open MPI find the ranks: MPI.  Otherwise
// shared memory in run_dir, for which all ranks must be on one node that has it.  Blocks until all
// ranks have met.  Throws Error: EX_CONFIG when what the starter, MPI and the options say of rank
// and size does not agree (a job that silently becomes N worlds of one is the worst outcome) or
// nobody says how the ranks meet; EX_UNAVAILABLE when this build has no MPI, a rank does not
// appear, or ranks on several nodes have no MPI to meet by.
std::unique_ptr<Communicator> MakeCommunicator(const CommOptions& options);

}  // namespace trainer
