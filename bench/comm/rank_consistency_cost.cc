// SPDX-License-Identifier: Apache-2.0
//
// usage: mpirun --oversubscribe -n N rank_consistency_cost [RANK]
// What it costs N ranks to agree, with the options of a real run and the facts of ImageNet's 1,152
// files: the time of CheckRankConsistency on rank 0, all ranks beginning together.  With RANK, that
// one has another --seed, and says how long it took until it knew, and what it would have said.

#include <sysexits.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "support/number.h"
#include "trainer/comm/factory.h"
#include "trainer/comm/rank_consistency.h"
#include "trainer/core/error.h"
#include "trainer/options/options.h"

namespace trainer {
namespace {

constexpr int kRounds = 21;
constexpr int kFiles = 1024 + 128;

int Number(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? -1 : support::WholeNumber<int>(text).value_or(-1);
}

std::vector<ConsistencyItem> ItemsOf(std::uint64_t seed) {
  Options options;
  options.seed = seed;
  std::vector<ConsistencyItem> items = SharedOptions(options);
  for (int file = 0; file < kFiles; ++file) {
    const std::string name = "train-" + std::to_string(10000 + file) + "-of-01024";
    items.push_back(
        {name, name + " of 148000000 bytes with 1251 records (offsets 0123456789abcdef)"});
  }
  return items;
}

double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

int Run(int odd_rank) {
  CommOptions options;
  options.rank = Number("OMPI_COMM_WORLD_RANK");
  options.size = Number("OMPI_COMM_WORLD_SIZE");
  options.launcher = "mpirun";
  if (options.size < 2) {
    std::cerr << "usage: mpirun --oversubscribe -n N rank_consistency_cost [RANK], N from 2 on\n";
    return EX_USAGE;
  }
  const auto communicator = MakeCommunicator(options);
  const std::vector<ConsistencyItem> items = ItemsOf(options.rank == odd_rank ? 2 : 1);
  communicator->Barrier();
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    try {
      CheckRankConsistency(*communicator, "", items, "give all ranks one command line");
    } catch (const Error& error) {
      std::cout << options.size << " ranks, rank " << options.rank << " knows after "
                << MillisecondsSince(start) << " ms: " << error.what() << std::endl;
      communicator->Abort(error.exit_code());
    }
    times.push_back(MillisecondsSince(start));
    communicator->Barrier();
  }
  std::sort(times.begin(), times.end());
  if (options.rank == 0) {
    std::cout << options.size << " ranks agree on " << items.size() << " facts in "
              << times[kRounds / 2] << " ms (median of " << kRounds << "; " << times.front()
              << " to " << times.back() << ")\n";
  }
  return EX_OK;
}

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) {
  try {
    return trainer::Run(argc > 1 ? support::WholeNumber<int>(argv[1]).value_or(-1) : -1);
  } catch (const trainer::Error& error) {
    std::cerr << "rank_consistency_cost: " << error.what() << '\n';
    return error.exit_code();
  }
}
