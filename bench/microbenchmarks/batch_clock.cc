// SPDX-License-Identifier: Apache-2.0

#include "bench/microbenchmarks/batch_clock.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "support/cpu_quota.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

double SecondsOf(FixedRateConsumer::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

BatchClock::BatchClock(const trainer::TfRecordLoaderOptions& options)
    : source_(trainer::MakeTfRecordLoader(options)) {}

double BatchClock::Take(int batches) { return TakeAtRate(batches, {}).seconds; }

Taking BatchClock::TakeAtRate(int batches, std::chrono::nanoseconds busy) {
  const auto start = FixedRateConsumer::Clock::now();
  FixedRateConsumer consumer(start, busy);
  trainer::HostBatch batch;
  for (int i = 0; i < batches; ++i) {
    std::this_thread::sleep_until(consumer.due());
    const auto requested = FixedRateConsumer::Clock::now();
    const bool is_there = source_->Next(batch);
    DDL_CHECK(is_there);  // training never ends
    consumer.Came(FixedRateConsumer::Clock::now() - requested);
  }
  std::this_thread::sleep_until(consumer.due());
  return {SecondsOf(FixedRateConsumer::Clock::now() - start), SecondsOf(consumer.waited())};
}

int ThreadsForCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::max(1, support::ThreadsWithinQuota("", cores, /*ranks=*/1));
}

}  // namespace bench
