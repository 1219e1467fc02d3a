// SPDX-License-Identifier: Apache-2.0
//
// Which checkpoints stay on disk.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace trainer {

struct Retention {
  int newest = 1;  // that are kept, and intact; at least 1
  // Of the checkpoints that are due every so many steps, every keep_every-th is kept for ever:
  // those of the steps keep_every * checkpoint_every, 2 * keep_every * checkpoint_every, ...
  std::int64_t checkpoint_every = 0;  // 0: none are due
  std::int64_t keep_every = 0;        // 0: none are kept for ever
};

// Whether the checkpoint of this step is.  The step alone decides, so that a run which goes on says
// the same.
bool IsKeptForEver(std::int64_t step, const Retention& retention);

// Removes the checkpoints that are older than the newest retention.newest intact ones (manifest
// readable, files of the sizes it says), not kept for ever, and not the best of the intact ones
// that were evaluated (evaluated.h), those set aside among them, and returns them.  `durable`, the
// directory that WriteCheckpoint has just returned, always stays, so the last valid checkpoint is
// never removed. One that cannot be removed, or a directory that cannot be read, is told to `warn`,
// one line: old files are no reason to end a training.
std::vector<std::filesystem::path> PruneCheckpoints(
    const std::filesystem::path& model_dir, const std::filesystem::path& durable,
    const Retention& retention, const std::function<void(const std::string&)>& warn);

// Gives what is at `checkpoint`, step-<digits>, a name that no reader takes for a checkpoint
// (names.h), so that it is neither in the way of a new one of its step nor lost.  Returns the name;
// nullopt, and nothing changed, where there is nothing or it cannot be renamed.
std::optional<std::filesystem::path> SetAside(const std::filesystem::path& checkpoint);

}  // namespace trainer
