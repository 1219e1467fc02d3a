// SPDX-License-Identifier: Apache-2.0
//
// Takes batches from TFRecord files as a training does, and says how long that takes.

#pragma once

#include <chrono>
#include <memory>

#include "trainer/data/tfrecord_loader.h"

namespace bench {

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
  // The same of a device that is busy so long with each of them (fixed_rate_consumer.h), until it
  // is done with the last one.
  Taking TakeAtRate(int batches, std::chrono::nanoseconds busy);

 private:
  std::unique_ptr<trainer::DataLoader> source_;
};

// One thread for each core that this process may run on.
int ThreadsForCores();

}  // namespace bench
