// SPDX-License-Identifier: Apache-2.0
//
// Reads the values of options as people write them.  Pure.

#pragma once

#include <optional>
#include <string>
#include <vector>

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

}  // namespace launcher
