// SPDX-License-Identifier: Apache-2.0
//
// The forms that Slurm writes numbers in: "4", "8(x2),3", "v100:4", "0-2,5".  Every function throws
// LaunchError(EX_CONFIG) that names the variable and its value.  Pure, safe from any thread.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace launcher {

// Environment variables by name; the caller takes them from the process.
using EnvironmentMap = std::map<std::string, std::string>;

// Longest value that is looked at; Linux itself passes no longer one (MAX_ARG_STRLEN).
inline constexpr std::size_t kMaxVariableBytes = 131072;

// A variable by name, or nullopt; an empty one counts as not set.
std::optional<std::string> FindVariable(const EnvironmentMap& environment, const std::string& name);

// "NAME=value", shortened where the value is long.
std::string Show(const std::string& name, const std::string& value);

// "4", from 0 to 2147483647.
int ParseCount(const std::string& name, const std::string& value);

// "8(x2),3" -> 8 8 3, at most 65,536 of them.
std::vector<int> ParseCountList(const std::string& name, const std::string& value);

// "4", "v100:4", "gpu:v100:4", "v100:2,a100:1": the sum of the counts.
int ParseGpuCount(const std::string& name, const std::string& value);

// "0,1,5" or "0-2,5" -> ascending indices. Empty for names that are no numbers (MIG devices).
std::vector<int> ParseIndices(const std::string& name, const std::string& value);

}  // namespace launcher
