// SPDX-License-Identifier: Apache-2.0

#include "bench/microbenchmarks/loader.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <limits>
#include <string>
#include <thread>

#include "bench/base/diagnostics.h"
#include "bench/base/statistics.h"
#include "support/cpu_quota.h"
#include "support/number.h"
#include "trainer/core/error.h"
#include "trainer/options/option_names.h"

namespace bench {
namespace {

trainer::Augmentation AugmentationOf(const std::string& name) {
  const auto* const found = std::ranges::find(trainer::kAugmentations, name,
                                              &trainer::Named<trainer::Augmentation>::name);
  DDL_CHECK(found != std::end(trainer::kAugmentations));
  return found->value;
}

// How long a device that takes images at this rate is busy with a batch.
std::chrono::nanoseconds BusyWithBatch(const LoaderOptions& options) {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  if (options.take_rate == 0) return {};
  return std::chrono::nanoseconds(options.batch_size * kNanoseconds / options.take_rate);
}

// Adds a round: each rank waits for the others before its first batch that counts.
void AddRound(const LoaderOptions& options, Ranks& ranks, LoaderSpeeds& speeds) {
  trainer::Communicator& communicator = ranks.communicator();
  BatchClock clock(
      RecordOptions(options, speeds.threads, communicator.rank(), communicator.size()));
  clock.TakeAtRate(options.warmup_steps, BusyWithBatch(options));
  communicator.Barrier();
  const Taking taking = clock.TakeAtRate(options.steps, BusyWithBatch(options));
  std::array sums{static_cast<double>(options.batch_size * options.steps) / taking.seconds,
                  taking.waited_seconds};
  communicator.AllReduceSum(sums);
  speeds.images_per_second.push_back(sums[0]);
  speeds.waited_seconds.push_back(sums[1] / communicator.size());
}

}  // namespace

void CheckLoaderOptions(const LoaderOptions& options) {
  constexpr int kMax = 1'000'000;
  constexpr int kMaxPixels = 4096;
  constexpr int kMaxThreads = 4096;
  constexpr int kMaxAhead = 1024;
  RequireRange("--batch_size", options.batch_size, 1, kMax);
  RequireRange("--image_size", options.image_size, 1, kMaxPixels);
  RequireRange("--prefetch", options.prefetch, 1, kMaxAhead);
  RequireRange("--steps", options.steps, 1, kMax);
  RequireRange("--warmup_steps", options.warmup_steps, 0, kMax);
  RequireRange("--rounds", options.rounds, 1, kMax);
  RequireRange("--take_rate", options.take_rate, 0, kMax);
  for (const int threads : options.threads) RequireRange("--threads", threads, 1, kMaxThreads);
}

trainer::TfRecordLoaderOptions RecordOptions(const LoaderOptions& options, int threads, int rank,
                                             int ranks) {
  trainer::TfRecordLoaderOptions records;
  records.data_dir = options.data_dir;
  records.data_idx_dir = options.data_idx_dir;
  records.batch_size = options.batch_size;
  records.image_size = options.image_size;
  records.augmentation = AugmentationOf(options.augmentation);
  records.rank = rank;
  records.world_size = ranks;
  records.bad_records =
      options.bad_records == "skip" ? trainer::BadRecords::kSkip : trainer::BadRecords::kStop;
  records.max_bad_records = std::numeric_limits<int>::max();
  records.on_bad_record = [](const std::string&) {};
  records.threads = threads;
  records.prefetch = options.prefetch;
  return records;
}

std::vector<LoaderSpeeds> MeasureLoader(const LoaderOptions& options, Ranks& ranks) {
  CheckLoaderOptions(options);
  std::vector<LoaderSpeeds> all;
  for (const int threads : options.threads) all.push_back({threads, {}, {}});
  if (all.empty()) all.push_back({ThreadsForCores(), {}, {}});
  for (int round = 0; round < options.rounds; ++round) {
    for (LoaderSpeeds& speeds : all) AddRound(options, ranks, speeds);
  }
  return all;
}

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

std::string FormatLoader(const LoaderOptions& options, std::span<const LoaderSpeeds> all,
                         int ranks) {
  const bool has_rate = options.take_rate > 0;
  const std::string consumer =
      has_rate ? fmt::format(", taken at {} images/s", options.take_rate) : std::string();
  std::string text =
      fmt::format("{}, each with batches of {} images of {} pixels{}; {} of {} steps\n\n",
                  support::Counted(ranks, "rank"), options.batch_size, options.image_size, consumer,
                  support::Counted(options.rounds, "round"), options.steps);
  text += "| threads | images/s  | per thread | min       | max       |";
  text += has_rate ? " % of rate | waited, s |\n" : "\n";
  text += "| ------- | --------- | ---------- | --------- | --------- |";
  text += has_rate ? " --------- | --------- |\n" : "\n";
  for (const LoaderSpeeds& speeds : all) {
    const Statistics rounds = StatisticsOf(speeds.images_per_second);
    const double median = MedianOf(speeds.images_per_second);
    text += fmt::format("| {:<7} | {:<9.1f} | {:<10.1f} | {:<9.1f} | {:<9.1f} |", speeds.threads,
                        median, median / (speeds.threads * ranks), rounds.min, rounds.max);
    if (has_rate) {
      const double wanted = static_cast<double>(options.take_rate * ranks);
      text += fmt::format(" {:<9.1f} | {:<9.3f} |", 100 * median / wanted,
                          MedianOf(speeds.waited_seconds));
    }
    text += "\n";
  }
  return text;
}

}  // namespace bench
