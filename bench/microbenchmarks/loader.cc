// SPDX-License-Identifier: Apache-2.0

#include "bench/microbenchmarks/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <limits>
#include <string>

#include "bench/microbenchmarks/batch_clock.h"
#include "trainer/core/error.h"
#include "trainer/options/option_names.h"

namespace bench {
namespace {

using trainer::Error;

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
  const auto require = [](const char* option, std::int64_t value, std::int64_t min,
                          std::int64_t max) {
    if (value >= min && value <= max) return;
    throw Error(EX_USAGE, fmt::format("{}={} must be from {} to {}", option, value, min, max));
  };
  constexpr int kMax = 1'000'000;
  constexpr int kMaxPixels = 4096;
  constexpr int kMaxThreads = 4096;
  constexpr int kMaxAhead = 1024;
  require("--batch_size", options.batch_size, 1, kMax);
  require("--image_size", options.image_size, 1, kMaxPixels);
  require("--prefetch", options.prefetch, 1, kMaxAhead);
  require("--steps", options.steps, 1, kMax);
  require("--warmup_steps", options.warmup_steps, 0, kMax);
  require("--rounds", options.rounds, 1, kMax);
  require("--take_rate", options.take_rate, 0, kMax);
  for (const int threads : options.threads) require("--threads", threads, 1, kMaxThreads);
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

}  // namespace bench
