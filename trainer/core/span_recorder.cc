// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/span_recorder.h"

#include <algorithm>

#include "support/number.h"

namespace trainer {
namespace {

// A number from 1 to `most` that is all of `text`.
std::optional<std::int64_t> NumberTo(std::int64_t max, std::string_view text) {
  const auto number = support::WholeNumber<std::int64_t>(text);
  return number && *number >= 1 && *number <= max ? number : std::nullopt;
}

}  // namespace

std::optional<StepWindow> ParseStepWindow(std::string_view text) {
  constexpr std::int64_t kLastStep = std::int64_t{1} << 60;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {};
  const auto first = NumberTo(kLastStep, text.substr(0, colon));
  const auto count = NumberTo(kMaxWindowSteps, text.substr(colon + 1));
  if (!first || !count) return {};
  return StepWindow{*first, *count};
}

namespace {

double SecondsFrom(SpanRecorder::Clock::time_point start, SpanRecorder::Clock::time_point time) {
  return std::chrono::duration<double>(time - start).count();
}

}  // namespace

void SpanRecorder::Start() {
  start_ = Clock::now();
  is_on_ = true;
}

void SpanRecorder::Add(SpanKind kind, int thread, std::int64_t number, Clock::time_point begin,
                       Clock::time_point end) {
  if (!is_on()) return;
  const Clock::time_point start = start_;
  if (begin < start) return;
  const std::size_t index = taken_.fetch_add(1);
  if (index >= places_.size()) return;
  places_[index].span = {SecondsFrom(start, begin), SecondsFrom(start, end), number, thread, kind};
  places_[index].is_filled = true;
}

std::vector<Span> SpanRecorder::Spans() const {
  std::vector<Span> spans;
  for (const Place& place : places_) {
    // A thread that has taken one may still be filling it.
    if (place.is_filled) spans.push_back(place.span);
  }
  return spans;
}

std::int64_t SpanRecorder::dropped() const {
  const std::size_t taken = taken_;
  return static_cast<std::int64_t>(taken - std::min(taken, places_.size()));
}

}  // namespace trainer
