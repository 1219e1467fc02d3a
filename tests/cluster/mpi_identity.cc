// SPDX-License-Identifier: Apache-2.0
//
// Prints who this rank is to MPI and by the variables of Open MPI's mpirun, and whether all ranks
// met: "mpi RANK/SIZE variables RANK/SIZE LOCAL_RANK/LOCAL_SIZE sum SUM", where SUM is that of the
// numbers of all ranks.

#include <mpi.h>

#include <cstdio>
#include <cstdlib>

namespace {

const char* Get(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "-";
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  int sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  std::printf("mpi %d/%d variables %s/%s %s/%s sum %d\n", rank, size, Get("OMPI_COMM_WORLD_RANK"),
              Get("OMPI_COMM_WORLD_SIZE"), Get("OMPI_COMM_WORLD_LOCAL_RANK"),
              Get("OMPI_COMM_WORLD_LOCAL_SIZE"), sum);
  MPI_Finalize();
  return 0;
}
