// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/step_window.h"

#include <charconv>

namespace trainer {
namespace {

// A number from 1 to `most` that is all of `text`.
std::optional<std::int64_t> NumberTo(std::int64_t max, std::string_view text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end || number < 1 || number > max) return {};
  return number;
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

}  // namespace trainer
