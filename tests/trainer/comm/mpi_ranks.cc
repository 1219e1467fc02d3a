// SPDX-License-Identifier: Apache-2.0
//
// usage: mpirun -n N trainer_comm_mpi_ranks CASE
// One rank of a test of the MPI communicator; tests/trainer/comm/mpi_test.sh starts it.
// Cases: all, abort, without-han, wrong-size.  Exit code: of the case, 99 if an expectation failed.

#include <sysexits.h>

#include <cstdlib>
#include <iostream>

#include "tests/support/test.h"
#include "tests/trainer/comm/conformance.h"
#include "tests/trainer/comm/ranks.h"
#include "trainer/comm/factory.h"

namespace trainer {
namespace {

CommOptions OptionsFromOpenMpi() {
  CommOptions options;
  options.rank = std::atoi(std::getenv("OMPI_COMM_WORLD_RANK"));
  options.size = std::atoi(std::getenv("OMPI_COMM_WORLD_SIZE"));
  options.launcher = "mpirun";
  return options;
}

void RunCase(const std::string& name) {
  CommOptions options = OptionsFromOpenMpi();
  if (name == "wrong-size") options.size += 1;
  options.leaves_out_han = name == "without-han";
  const auto comm = MakeCommunicator(options);
  if (name == "abort") {
    // The others are in a collective, and so is this rank's communication thread.
    NoStream stream;
    float value = 1;
    if (comm->rank() != 1) return comm->Barrier();
    comm->StartAllReduce(&value, 1, DType::kFloat32, Reduction::kSum, stream);
    comm->Abort(EX_DATAERR);
  }
  NoStream stream;
  ExpectACommunicator(*comm, stream);
  for (const std::size_t bytes : {0UL, 1UL, 1UL << 20}) {
    const auto seconds = comm->SecondsFromPrevious(bytes);
    EXPECT_TRUE(seconds.has_value());
    EXPECT_GT(seconds.value_or(0), 0);
  }
  comm->Barrier();
  if (comm->rank() == 0) std::cout << comm->description() << "\n";
  const char* priority = std::getenv("OMPI_MCA_coll_han_priority");
  std::cout << "priority of han: " << (priority == nullptr ? "its own" : priority) << "\n";
}

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) {
  if (argc != 2) return EX_USAGE;
  try {
    trainer::RunCase(argv[1]);
  } catch (const trainer::Error& error) {
    std::cerr << error.what() << "\n";
    return error.exit_code();
  }
  return ::testing::Test::HasFailure() ? 99 : 0;
}
