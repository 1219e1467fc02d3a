// SPDX-License-Identifier: Apache-2.0
//
// In the place of mpi_communicator.cc in a build without MPI.

#include "trainer/comm/mpi_communicator.h"
#include "trainer/core/error.h"

namespace trainer {

std::unique_ptr<Communicator> MakeMpiCommunicator(const CommOptions& options) {
  throw Error(EX_UNAVAILABLE,
              "the ranks were started by " + options.launcher +
                  ", but this program was built without MPI: install libopenmpi-dev and build "
                  "again, or run on one machine with ddlrun --launcher=local");
}

}  // namespace trainer
