// SPDX-License-Identifier: Apache-2.0

#include "bench/parts/batch_clock.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "bench/parts/pace.h"
#include "support/cpu_quota.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

double SecondsOf(Pace::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

BatchClock::BatchClock(const trainer::TfRecordLoaderOptions& options)
    : source_(trainer::MakeTfRecordLoader(options)) {}

double BatchClock::Take(int batches) { return TakeAtPace(batches, {}).seconds; }

Taking BatchClock::TakeAtPace(int batches, std::chrono::nanoseconds busy) {
  const auto start = Pace::Clock::now();
  Pace pace(start, busy);
  trainer::HostBatch batch;
  for (int i = 0; i < batches; ++i) {
    std::this_thread::sleep_until(pace.due());
    const auto requested = Pace::Clock::now();
    const bool is_there = source_->Next(batch);
    DDL_CHECK(is_there);  // training never ends
    pace.Came(Pace::Clock::now() - requested);
  }
  std::this_thread::sleep_until(pace.due());
  return {SecondsOf(Pace::Clock::now() - start), SecondsOf(pace.waited())};
}

int ThreadsForCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::max(1, support::ThreadsWithinQuota("", cores, /*ranks=*/1));
}

}  // namespace bench
