// SPDX-License-Identifier: Apache-2.0
//
// ddlbench loader: how many images/s the input of a training gives by itself: records read, JPEG
// images decoded, cropped, resized and laid into batches.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/microbenchmarks/options.h"
#include "bench/microbenchmarks/ranks.h"
#include "trainer/data/tfrecord_loader.h"

namespace bench {

// Throws trainer::Error(EX_USAGE) naming the option that is wrong.
void CheckLoaderOptions(const LoaderOptions& options);

// As ddltraind makes its source of training, without a cap on what is skipped.
trainer::TfRecordLoaderOptions RecordOptions(const LoaderOptions& options, int threads, int rank,
                                             int ranks);

// With so many threads in a rank, in each round.
struct LoaderSpeeds {
  int threads = 1;
  std::vector<double> images_per_second;  // of all ranks together
  std::vector<double> waited_seconds;     // for batches, mean over the ranks
};

// Rounds in which each number of threads has a turn, so that what else the machine does is spread
// over all.  Collective; the same result on every rank.  Throws trainer::Error.
std::vector<LoaderSpeeds> MeasureLoader(const LoaderOptions& options, Ranks& ranks);

// When a device that is busy equally long with every batch asks for the next one.  Pure.
// Only a batch that is waited for makes the next one later: a sleep that ends late does not, or the
// input would be given time that no device gives it.
class FixedRateConsumer {
 public:
  using Clock = std::chrono::steady_clock;

  // `busy`: with one batch; none: it asks again at once.
  FixedRateConsumer(Clock::time_point start, Clock::duration busy) : busy_(busy), due_(start) {}

  // When the next batch is to be asked for: at the beginning, and when it is done with the last.
  Clock::time_point due() const { return due_; }
  // That batch has come, so long after it was asked for.
  void Came(Clock::duration wait) {
    waited_ += wait;
    due_ += wait + busy_;
  }
  // For all batches so far.
  Clock::duration waited() const { return waited_; }

 private:
  const Clock::duration busy_;
  Clock::time_point due_;
  Clock::duration waited_{};
};

// How long taking batches took.
struct Taking {
  double seconds = 0;
  double waited_seconds = 0;  // of these, for batches
};

// Takes batches from TFRecord files as a training does.
class BatchClock {
 public:
  // Batches begin to be made ahead at once.  Throws trainer::Error as trainer::MakeTfRecordLoader
  // does.
  explicit BatchClock(const trainer::TfRecordLoaderOptions& options);

  // Seconds until `batches` more have come, from asking for the first of them.  Throws
  // trainer::Error(EX_DATAERR) that names file and offset of a bad record.
  double Take(int batches);
  // The same of a device that is busy so long with each of them, until it is done with the last.
  Taking TakeAtRate(int batches, std::chrono::nanoseconds busy);

 private:
  std::unique_ptr<trainer::DataLoader> source_;
};

// One thread for each core that this process may run on.
int ThreadsForCores();

// What is printed: a line that says what was measured on so many ranks, and a table: threads of a
// rank, images/s of all ranks together (the median of the rounds), those of one thread, min and
// max.  With a rate to take at, that median in percent of the ranks' rates, and the seconds of a
// round waited for input.  Pure.
std::string FormatLoader(const LoaderOptions& options, std::span<const LoaderSpeeds> all,
                         int ranks);

}  // namespace bench
