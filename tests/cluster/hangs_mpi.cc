// SPDX-License-Identifier: Apache-2.0
//
// Ranks of MPI of which one receives what nobody sends, while the others sum.

#include <mpi.h>

#include <cstdlib>

namespace {

void Exchange(int odd) {
  int rank = 0;
  double value = 1, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (rank == odd) MPI_Recv(&value, 1, MPI_DOUBLE, 0, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Exchange(argc > 1 ? std::atoi(argv[1]) : 0);
  MPI_Finalize();
}
