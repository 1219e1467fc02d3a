// SPDX-License-Identifier: Apache-2.0
//
// Which checkpoints stay on disk.

#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace trainer {

// Removes the checkpoints that are older than the newest `keep` intact ones (manifest readable,
// files of the sizes it says), those set aside among them, and returns them.  `durable`, the
// directory that WriteCheckpoint has just returned, always stays, so the last valid checkpoint is
// never removed.  REQUIRES: keep >= 1.
// One that cannot be removed, or a directory that cannot be read, is told to `warn`, one line: old
// files are no reason to end a training.
std::vector<std::filesystem::path> PruneCheckpoints(
    const std::filesystem::path& model_dir, const std::filesystem::path& durable, int keep,
    const std::function<void(const std::string&)>& warn);

// Gives what is at `checkpoint`, step-<digits>, a name that no reader takes for a checkpoint
// (names.h), so that it is neither in the way of a new one of its step nor lost.  Returns the name;
// nullopt, and nothing changed, where there is nothing or it cannot be renamed.
std::optional<std::filesystem::path> SetAside(const std::filesystem::path& checkpoint);

}  // namespace trainer
