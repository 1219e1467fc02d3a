// SPDX-License-Identifier: Apache-2.0
//
// Takes batches from TFRecord files as a training does, and says how long that takes.

#pragma once

#include <chrono>
#include <memory>

#include "trainer/data/tfrecord_loader.h"

namespace bench {

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

struct Taking {
  double seconds = 0;
  double waited_seconds = 0;  // of these, for batches
};

class BatchClock {
 public:
  // Batches begin to be made ahead at once.  Throws trainer::Error as trainer::MakeTfRecordLoader
  // does.
  explicit BatchClock(const trainer::TfRecordLoaderOptions& options);

  // Seconds until `batches` more have come, from asking for the first of them.  Throws
  // trainer::Error(EX_DATAERR) that names file and offset of a bad record.
  double Take(int batches);
  // The same of a device that is busy so long with each of them, until it
  // is done with the last one.
  Taking TakeAtRate(int batches, std::chrono::nanoseconds busy);

 private:
  std::unique_ptr<trainer::DataLoader> source_;
};

// One thread for each core that this process may run on.
int ThreadsForCores();

}  // namespace bench
