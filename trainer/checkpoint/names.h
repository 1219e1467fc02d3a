// SPDX-License-Identifier: Apache-2.0
//
// The names in <model_dir>/checkpoints:
//   step-0000001234                    a checkpoint
//   .tmp-step-0000001234-<host>-<pid>  one that a process is making or removing
//   step-0000001234.unusable           one that a run has passed over, which it keeps for people
// Pure, but for TemporaryName and HostName.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace trainer {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kAverageFile = "average.safetensors";  // where averages are kept
inline constexpr const char* kManifestFile = "manifest.json";

std::filesystem::path CheckpointsDirectory(const std::filesystem::path& model_dir);

std::string CheckpointName(std::int64_t step);
// nullopt for any other name.
std::optional<std::int64_t> ParseCheckpointName(std::string_view name);

// The `count`-th name for one that was passed over, from 1.
std::string UnusableName(std::int64_t step, int count);
// The step; nullopt for any other name.
std::optional<std::int64_t> ParseUnusableName(std::string_view name);

// Of this process.
std::string TemporaryName(std::int64_t step);
struct TemporaryOwner {
  std::string host;
  std::int64_t pid = 0;
};
// nullopt for any other name.
std::optional<TemporaryOwner> ParseTemporaryName(std::string_view name);
// Of "<host>-<pid>", which ends such names.
std::optional<TemporaryOwner> ParseOwner(std::string_view text);
std::string HostName();

}  // namespace trainer
