// SPDX-License-Identifier: Apache-2.0
//
// Enters PMIx fences without data, as MPI_Init does, each rank at another time, and prints
// "fence FENCE RANK ENTERED LEFT" in seconds by the clock that all nodes of tests/cluster share.

#include <pmix.h>

#include <chrono>
#include <cstdio>
#include <thread>

namespace {

constexpr int kFences = 6;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main() {
  pmix_proc_t own;
  if (PMIx_Init(&own, nullptr, 0) != PMIX_SUCCESS) return 1;
  const auto rank = static_cast<int>(own.rank);
  for (int fence = 0; fence < kFences; ++fence) {
    std::this_thread::sleep_for(std::chrono::milliseconds((7 * rank + 13 * fence) % 30));
    const double entered = Now();
    if (PMIx_Fence(nullptr, 0, nullptr, 0) != PMIX_SUCCESS) return 2;
    std::printf("fence %d %d %.6f %.6f\n", fence, rank, entered, Now());
  }
  std::fflush(stdout);
  return PMIx_Finalize(nullptr, 0) == PMIX_SUCCESS ? 0 : 3;
}
