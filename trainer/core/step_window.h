// SPDX-License-Identifier: Apache-2.0
//
// Some training steps of a run, one after the other.  Pure.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

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

}  // namespace trainer
