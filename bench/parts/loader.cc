// SPDX-License-Identifier: Apache-2.0

#include "bench/parts/loader.h"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "bench/parts/batch_clock.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using trainer::Error;

// Of all ranks together: each waits for the others before its first batch that counts.
double Speed(const LoaderOptions& options, int threads, Ranks& ranks) {
  trainer::Communicator& communicator = ranks.communicator();
  BatchClock clock(RecordOptions(options, threads, communicator.rank(), communicator.size()));
  clock.Take(options.warmup_steps);
  communicator.Barrier();
  const double seconds = clock.Take(options.steps);
  double speed = static_cast<double>(options.batch_size * options.steps) / seconds;
  communicator.AllReduceSum({&speed, 1});
  return speed;
}

}  // namespace

void CheckLoaderOptions(const LoaderOptions& options) {
  const auto require = [](const char* option, std::int64_t value, std::int64_t least,
                          std::int64_t most) {
    if (value >= least && value <= most) return;
    throw Error(EX_USAGE, fmt::format("{}={} must be from {} to {}", option, value, least, most));
  };
  constexpr int kMost = 1'000'000;
  constexpr int kMostPixels = 4096;
  constexpr int kMostThreads = 4096;
  constexpr int kMostAhead = 1024;
  require("--batch_size", options.batch_size, 1, kMost);
  require("--image_size", options.image_size, 1, kMostPixels);
  require("--prefetch", options.prefetch, 1, kMostAhead);
  require("--steps", options.steps, 1, kMost);
  require("--warmup_steps", options.warmup_steps, 0, kMost);
  require("--rounds", options.rounds, 1, kMost);
  for (const int threads : options.threads) require("--threads", threads, 1, kMostThreads);
}

trainer::RecordSourceOptions RecordOptions(const LoaderOptions& options, int threads, int rank,
                                           int ranks) {
  trainer::RecordSourceOptions records;
  records.data_dir = options.data_dir;
  records.data_idx_dir = options.data_idx_dir;
  records.batch_size = options.batch_size;
  records.image_size = options.image_size;
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
  for (const int threads : options.threads) all.push_back({threads, {}});
  if (all.empty()) all.push_back({ThreadsForCores(), {}});
  for (int round = 0; round < options.rounds; ++round) {
    for (LoaderSpeeds& speeds : all) {
      speeds.images_per_second.push_back(Speed(options, speeds.threads, ranks));
    }
  }
  return all;
}

}  // namespace bench
