// SPDX-License-Identifier: Apache-2.0
//
// How long the ranks of a job may take to start, and how long to end once one of them has.  Pure:
// the time is told.

#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

namespace launcher {

class TimeLimits {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Over { kNothing, kStart, kEnd };

  // A limit of 0 is none.  The ranks count as started until ExpectStart is called.
  TimeLimits(std::chrono::milliseconds start, std::chrono::milliseconds end, std::size_t ranks)
      : start_(start), end_(end), ranks_(ranks) {}

  // The programs of the ranks are about to start, as soon as there are resources for them.
  void ExpectStart(Clock::time_point now);
  // There are none yet, and there is no telling how long that takes.
  void AwaitResources();
  // So many ranks have started.
  void SetStarted(std::size_t ranks, Clock::time_point now);
  // Nobody will hear whether ranks have started.
  void GiveStartUp();
  // So many ranks have ended without a failure, or stopped early.
  void SetEnded(std::size_t ranks, Clock::time_point now);
  // The ranks could not go on until now.
  void BeginAnew(Clock::time_point now);

  bool is_starting() const { return is_starting_; }
  std::optional<Clock::time_point> deadline() const { return deadline_; }
  // The limit that is over.
  Over Look(Clock::time_point now) const;

 private:
  void Limit(std::chrono::milliseconds limit, Clock::time_point now);

  const std::chrono::milliseconds start_;
  const std::chrono::milliseconds end_;
  const std::size_t ranks_;
  bool is_starting_ = false;
  std::size_t ended_ = 0;
  std::optional<Clock::time_point> deadline_;
};

}  // namespace launcher
