// SPDX-License-Identifier: Apache-2.0
//
// When a device that is busy equally long with every batch asks for the next one.  Pure.

#pragma once

#include <chrono>

namespace bench {

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

}  // namespace bench
