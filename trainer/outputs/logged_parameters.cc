// SPDX-License-Identifier: Apache-2.0

#include "trainer/outputs/logged_parameters.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

namespace trainer {
namespace {

// A number where all of `text` is one.
template <typename Number>
bool IsNumber(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end;
}

LogValue ValueOf(const OptionRow& row, const std::string& text) {
  std::int64_t whole = 0;
  std::uint64_t large = 0;  // a seed
  double real = 0;
  if (row.access.is_on_or_off) return !text.empty();
  if (IsNumber(text, whole)) return whole;
  if (IsNumber(text, large)) return large;
  if (IsNumber(text, real)) return real;
  return text;
}

}  // namespace

LogFields LoggedParameters(const Options& options) {
  LogFields parameters;
  for (const OptionRow& row : OptionTable()) {
    if (row.rank_rule == RankRule::kOtherName) continue;
    const std::string text = row.access.value(options);
    if (!text.empty() || row.access.is_on_or_off) {
      parameters.emplace_back(row.name, ValueOf(row, text));
    }
  }
  return parameters;
}

}  // namespace trainer
