// SPDX-License-Identifier: Apache-2.0
//
// usage: mpirun -n N mpi_all_reduce MIN_BYTES MAX_BYTES FACTOR ITERATIONS
// MPI_Allreduce by itself, of fp32 numbers in place, timed as `ddlbench allreduce --form=osu` times
// ddltraind's communicators, and printed so: what these add is the difference.

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "support/number.h"

namespace {

// Microseconds of one sum, on this rank.
double Measure(std::vector<float>& data, std::size_t count, int iterations) {
  constexpr double kMicrosecondsPerSecond = 1e6;
  double seconds = 0;
  for (int i = 0; i < iterations; ++i) {
    const double start = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    seconds += MPI_Wtime() - start;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return seconds / iterations * kMicrosecondsPerSecond;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  constexpr int kArguments = 5;
  const long min = argc == kArguments ? support::WholeNumber<long>(argv[1]).value_or(0) : 0;
  const long max = argc == kArguments ? support::WholeNumber<long>(argv[2]).value_or(0) : 0;
  const long factor = argc == kArguments ? support::WholeNumber<long>(argv[3]).value_or(0) : 0;
  const int iterations = argc == kArguments ? support::WholeNumber<int>(argv[4]).value_or(0) : 0;
  if (min < static_cast<long>(sizeof(float)) || factor < 2 || iterations < 1) {
    if (rank == 0)
      std::fputs("usage: mpi_all_reduce MIN_BYTES MAX_BYTES FACTOR ITERATIONS\n", stderr);
    MPI_Finalize();
    return 64;
  }
  std::vector<float> data(static_cast<std::size_t>(max) / sizeof(float));
  for (long bytes = min; bytes <= max; bytes *= factor) {
    const std::size_t count = static_cast<std::size_t>(bytes) / sizeof(float);
    Measure(data, count, std::max(1, iterations / 4));  // warm-up
    double mean = Measure(data, count, iterations);
    double fastest = mean;
    double slowest = mean;
    MPI_Allreduce(MPI_IN_PLACE, &mean, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &fastest, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) {
      std::printf("%-10zu%18.2f%18.2f%18.2f%12d\n", count * sizeof(float), mean / ranks, fastest,
                  slowest, iterations);
    }
  }
  MPI_Finalize();
  return 0;
}
