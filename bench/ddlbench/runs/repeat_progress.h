// SPDX-License-Identifier: Apache-2.0
//
// How far a run of ddlbench repeat has come, read from its log while it is written.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>

#include "bench/run_log/log_lines.h"
#include "bench/run_log/run_steps.h"

namespace bench {

class RepeatProgress {
 public:
  // `out` must outlive it.  `prefix`: in front of each line.
  RepeatProgress(std::filesystem::path log, std::int64_t global_batch, int repeat, int number,
                 std::ostream& out, std::string prefix = "");

  // Prints Mila's line for each observation that has ended since the last call.  The time that is
  // left is that of the mean of the observations that count, or of the last one while none does.
  // Does not throw: from a log that cannot be read on it prints no more.
  void Show() noexcept;

 private:
  void ShowObservation();

  const std::filesystem::path path_;
  const std::int64_t global_batch_;
  const int repeat_;
  const int number_;
  std::ostream& out_;
  const std::string prefix_;
  std::optional<LogLines> lines_;
  RunSteps steps_;
  int shown_ = 0;
  double counted_seconds_ = 0;
  bool has_failed_ = false;
};

}  // namespace bench
