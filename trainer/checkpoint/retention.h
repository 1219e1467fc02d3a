// SPDX-License-Identifier: Apache-2.0
//
// Which checkpoints stay on disk.

#pragma once

#include <filesystem>
#include <vector>

namespace trainer {

inline constexpr int kDefaultKeptCheckpoints = 5;

// Removes the checkpoints that are older than the newest `keep` intact ones (manifest readable,
// files of the sizes it says) and returns them.  `durable`, the directory that WriteCheckpoint has
// just returned, always stays, so the last valid checkpoint is never removed.  REQUIRES: keep >= 1.
// Throws Error(EX_OSERR) when one cannot be removed.
std::vector<std::filesystem::path> PruneCheckpoints(const std::filesystem::path& model_dir,
                                                    const std::filesystem::path& durable,
                                                    int keep = kDefaultKeptCheckpoints);

}  // namespace trainer
