// SPDX-License-Identifier: Apache-2.0
//
// Reads the values of options as people write them.  Pure.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/cli/options.h"
#include "support/number.h"

namespace launcher {

// The largest value of an option that is a count; a larger one is taken for a typing error.
inline constexpr int kMaxCount = 1'000'000;

// Each stores `value` and returns "", or what was expected instead.
std::string ParseCount(const std::string& value, int min, int* count);
std::string ParseCount(const std::string& value, int min, std::optional<int>* count);
std::string OneOf(std::string& target, const std::string& value,
                  const std::vector<std::string>& choices);

// The values of --launcher, and of `launcher` of a site file: "auto" and the names of launchers.h.
std::vector<std::string> LauncherNames();

// Whether `value` is "VAR" or "VAR=value".  The name may be one that no shell takes, but has no
// blanks.
bool IsExport(const std::string& value);

// The largest rank of a list "0,3-5" (of "all" 0); nullopt where it is no list.
std::optional<int> LargestRank(const std::string& list);

// Functions that read the value of an option and store it, for option_table.cc alone.  Each returns
// "" or what was expected instead.  Pure.

template <std::optional<int> Options::*member, int min = 1>
std::string SetCount(Options& options, const std::string& value) {
  return ParseCount(value, min, &(options.*member));
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

// "" or "text", or "json".
template <auto member, typename Form>
std::string SetFormat(Options& options, const std::string& value) {
  std::string form;
  const std::string expected = OneOf(form, value.empty() ? "text" : value, {"text", "json"});
  options.*member = form == "json" ? Form::kJson : Form::kText;
  return expected;
}

// "" or "N", images/s.
inline std::string SetAdvise(Options& options, const std::string& value) {
  options.advise = true;
  if (value.empty()) return "";
  options.advised_speed = support::WholeNumber<double>(value);
  const bool is_speed = options.advised_speed.value_or(0) > 0 && *options.advised_speed < 1e9;
  return is_speed ? "" : "the images/s of one GPU, a number above 0";
}

template <bool Options::*member>
std::string SetTrue(Options& options, const std::string&) {
  options.*member = true;
  return "";
}

}  // namespace launcher
