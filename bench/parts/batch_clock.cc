// SPDX-License-Identifier: Apache-2.0

#include "bench/parts/batch_clock.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "trainer/core/error.h"

namespace bench {

BatchClock::BatchClock(const trainer::RecordSourceOptions& options)
    : source_(trainer::MakeRecordSource(options)) {}

double BatchClock::Take(int batches) {
  const auto start = std::chrono::steady_clock::now();
  trainer::HostBatch batch;
  for (int i = 0; i < batches; ++i) {
    const bool is_there = source_->Next(batch);
    DDL_CHECK(is_there);  // training never ends
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int ThreadsForCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

}  // namespace bench
