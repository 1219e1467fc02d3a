// SPDX-License-Identifier: Apache-2.0
//
// Reads numbers in the forms in which Slurm writes them into variables: "4", "8(x2),3", "v100:4",
// "0-2,5".  Pure, safe from any thread.
//
// Other versions of Slurm have other variables and other forms.  So a variable without which ddlrun
// cannot go on is read by Parse..., which throws LaunchError(EX_CONFIG) with its name and value;
// one that is only compared with others is read by TryParse..., which returns nullopt for a form
// that is not known.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/base/environment.h"

namespace launcher {

// The longest value that is read.  Linux itself passes no longer one (MAX_ARG_STRLEN).
inline constexpr std::size_t kMaxVariableBytes = 131072;

// A variable by name, or nullopt; an empty one counts as not set.
std::optional<std::string> FindVariable(const Environment& environment, const std::string& name);

// "NAME=value", shortened where the value is long.
std::string Show(const std::string& name, const std::string& value);

// Throws LaunchError(EX_CONFIG), "LEFT contradicts RIGHT: HINT", and what else it may be.
[[noreturn]] void Contradict(const std::string& left, const std::string& right,
                             const std::string& hint);

// "4", from 0 to 2147483647.
std::optional<int> TryParseCount(const std::string& value);
int ParseCount(const std::string& name, const std::string& value);

// "8(x2),3" -> 8 8 3, at most 65,536 of them.
std::optional<std::vector<int>> TryParseCountList(const std::string& value);

// "4", "v100:4", "gpu:v100:4", "v100:2,a100:1": the sum of the counts.
std::optional<int> TryParseGpuCount(const std::string& value);

// What SLURM_TRES_PER_TASK says that one task needs: "cpu=2,gres/gpu=1", "gres/gpu:v100=1",
// "cpu:2,gres:gpu:1".  Later versions of Slurm set it instead of SLURM_GPUS_PER_TASK.  A number
// that it does not say is empty.
struct TresPerTask {
  std::optional<int> cpus, gpus;
};
TresPerTask ParseTresPerTask(const std::string& value);

// The indices of "0,1,5" or "0-2,5", ascending.  Empty for anything else, such as the names of MIG
// devices, which are needed nowhere.
std::vector<int> ParseIndices(const std::string& value);

}  // namespace launcher
