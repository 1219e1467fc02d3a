// SPDX-License-Identifier: Apache-2.0
//
// Where time goes on one rank: from when until when each of its threads did what.  Memory is taken
// once, when the recorder is made; while it is off, to ask whether it is on is all it costs.
//
// Threads: Add and is_on from any number of threads, without a lock; the rest from one.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace trainer {

struct StepWindow {
  std::int64_t first = 1;  // counted from 1
  std::int64_t count = 0;

  std::int64_t last() const { return first + count - 1; }
  friend bool operator==(const StepWindow&, const StepWindow&) = default;
};

inline constexpr std::int64_t kMaxWindowSteps = 1000;

// "200:20" are 20 steps from the 200th on.  Nothing for what is no such text, a number below 1, and
// more than kMaxWindowSteps steps.
std::optional<StepWindow> ParseStepWindow(std::string_view text);

enum class SpanKind : std::uint8_t {
  kStep,  // a whole training step; its number is that of the step, from 1
  kInputWait,
  kForward,
  kBackward,
  kExposedAllReduce,
  kUpdate,     // phases of a step (telemetry/meters/step_timer.h), likewise
  kAllReduce,  // of gradients, over all ranks; its number is how many bytes
  kImage,      // read, decoded and augmented; its number is the step it is for, from 1
};

struct Span {
  double begin = 0;  // seconds from Start
  double end = 0;
  std::int64_t number = 0;
  std::int32_t thread = 0;  // of those that do the same
  SpanKind kind = SpanKind::kStep;
};

class SpanRecorder {
 public:
  using Clock = std::chrono::steady_clock;

  // For `capacity` spans; further ones are counted and dropped.
  explicit SpanRecorder(std::size_t capacity) : places_(capacity) {}

  // To be called once each.
  void Start();
  void Stop() { is_on_.store(false, std::memory_order_relaxed); }
  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }

  // Does nothing while it is off, or if `begin` was before Start.
  void Add(SpanKind kind, int thread, std::int64_t number, Clock::time_point begin,
           Clock::time_point end);

  // Those that are there, in no order.
  std::vector<Span> Spans() const;
  std::int64_t dropped() const;

 private:
  struct Place {
    Span span;
    std::atomic<bool> is_filled = false;
  };

  std::vector<Place> places_;
  std::atomic<std::size_t> taken_ = 0;  // of places_, and of those that would have followed
  std::atomic<bool> is_on_ = false;
  std::atomic<Clock::time_point> start_ = Clock::time_point();
};

// From here to the end of the scope.  `recorder` may be null.
class SpanOfScope {
 public:
  SpanOfScope(SpanRecorder* recorder, SpanKind kind, int thread, std::int64_t number)
      : recorder_(recorder != nullptr && recorder->is_on() ? recorder : nullptr),
        kind_(kind),
        thread_(thread),
        number_(number) {
    if (recorder_ != nullptr) begin_ = SpanRecorder::Clock::now();
  }
  ~SpanOfScope() {
    if (recorder_ == nullptr) return;
    recorder_->Add(kind_, thread_, number_, begin_, SpanRecorder::Clock::now());
  }
  SpanOfScope(const SpanOfScope&) = delete;
  SpanOfScope& operator=(const SpanOfScope&) = delete;

 private:
  SpanRecorder* const recorder_;
  const SpanKind kind_;
  const int thread_;
  const std::int64_t number_;
  SpanRecorder::Clock::time_point begin_;
};

}  // namespace trainer
