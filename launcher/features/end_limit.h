// SPDX-License-Identifier: Apache-2.0
//
// --end-limit: a job ends when some ranks have ended well, and others do not end.

#pragma once

#include "launcher/features/feature.h"

namespace launcher {

extern const Feature kEndLimit;

// Ends the job when a rank is still there `limit` after the first one has ended, without a failure
// or stopped early.  The time begins anew when ranks have waited for a reader of their output.
class EndLimit : public JobWatcher {
 public:
  explicit EndLimit(std::chrono::milliseconds limit) : limit_(limit) {}

  void OnEvent(WatchedJob& job, Event event) override;
  void OnContinue(WatchedJob& job) override;
  void Poll(WatchedJob& job) override;
  Deadline deadline() const override { return deadline_; }

 private:
  const std::chrono::milliseconds limit_;
  Deadline deadline_;
};

}  // namespace launcher
