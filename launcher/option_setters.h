// SPDX-License-Identifier: Apache-2.0
//
// How values of options are read and stored, for option_table.cc alone.  Each returns "" or what
// was expected instead.  Pure.

#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "launcher/options.h"

namespace launcher {

// Most of anything that a count option may ask for; more is taken for a typing error.
inline constexpr int kMaxCount = 1'000'000;

template <typename Count>
std::string ParseCount(const std::string& value, int least, Count* count) {
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < least ||
      number > kMaxCount) {
    return "a whole number from " + std::to_string(least) + " to " + std::to_string(kMaxCount);
  }
  *count = number;
  return "";
}

template <std::optional<int> Options::*member, int least = 1>
std::string SetCount(Options& options, const std::string& value) {
  return ParseCount(value, least, &(options.*member));
}

template <int Options::*member>
std::string SetCountOrNone(Options& options, const std::string& value) {
  return ParseCount(value, 0, &(options.*member));
}

template <std::string Options::*member>
std::string SetText(Options& options, const std::string& value) {
  if (value.empty()) return "a value that is not empty";
  options.*member = value;
  return "";
}

template <std::vector<std::string> Options::*member>
std::string AddText(Options& options, const std::string& value) {
  if (value.empty()) return "a value that is not empty";
  (options.*member).push_back(value);
  return "";
}

template <bool Options::*member>
std::string SetTrue(Options& options, const std::string&) {
  options.*member = true;
  return "";
}

inline std::string OneOf(std::string& target, const std::string& value,
                         const std::vector<std::string>& choices) {
  std::string expected;
  for (const std::string& choice : choices) {
    if (value == choice) {
      target = value;
      return "";
    }
    expected += (expected.empty() ? "" : " or ") + choice;
  }
  return expected;
}

}  // namespace launcher
