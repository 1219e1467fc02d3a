// SPDX-License-Identifier: Apache-2.0
//
// Which checkpoints stay on disk.

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/writer.h"

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
// that were evaluated, those set aside among them, and returns them.  `durable`, the
// directory that WriteCheckpoint has just returned, always stays, so the last valid checkpoint is
// never removed. One that cannot be removed, or a directory that cannot be read, is told to `warn`,
// one line: old files are no reason to end a training.
std::vector<std::filesystem::path> PruneCheckpoints(
    const std::filesystem::path& model_dir, const std::filesystem::path& durable,
    const Retention& retention, const std::function<void(const std::string&)>& warn);

// Gives what is at `checkpoint`, step-<digits>, a name that no reader takes for a checkpoint
// (manifest.h), so that it is neither in the way of a new one of its step nor lost.  Returns the
// name; nullopt, and nothing changed, where there is nothing or it cannot be renamed.
std::optional<std::filesystem::path> SetAside(const std::filesystem::path& checkpoint);

// What evaluations have found of the weights in checkpoints.  Each manifest has that of its own
// weights, so which is the best follows from those that are there, and from nothing else.
struct EvaluatedCheckpoint {
  std::int64_t step = 0;
  std::filesystem::path directory;
  double top1 = 0;                // fraction of 1
  SplitIdentity validation = {};  // the images that it is of
};

struct EvaluatedCheckpoints {
  std::vector<EvaluatedCheckpoint> known;  // newest first
  // That cannot be read at this time, and may be better than all that are known.
  std::vector<std::filesystem::path> unreadable;
};

// The checkpoints of model_dir that were evaluated and look whole (ReadManifestIfWhole).  Throws as
// ListCheckpoints.
EvaluatedCheckpoints ListEvaluated(const std::filesystem::path& model_dir);

// Those that are not known to be of other images than `validation`.
std::vector<EvaluatedCheckpoint> EvaluatedOn(const SplitIdentity& validation,
                                             std::vector<EvaluatedCheckpoint> evaluated);

// The one with the highest top-1, of equal ones the oldest, among those that were evaluated on the
// images of the newest of which these are known; nullopt if there is none.
std::optional<EvaluatedCheckpoint> BestOf(const std::vector<EvaluatedCheckpoint>& evaluated);

// Notes what an evaluation on `validation` has found of the weights of `checkpoint`, a directory
// that WriteCheckpoint has returned.  A crash leaves its manifest either as it was or as it is to
// be. Throws as ReadManifest, or Error(EX_OSERR); then it is as it was, but where the last call
// fails, after which a crash of the machine may bring back what was.
void NoteTop1(const std::filesystem::path& checkpoint, double top1, const WriteHook& hook = {},
              const SplitIdentity& validation = {});

// Which files and directories of writers will never be finished.

// Whether `owner` is dead, as far as can be known: its process on this host is gone, or nothing in
// `path`, which it was writing, has changed for an hour (on another host; or another process has
// its number now).
bool IsStale(const std::filesystem::path& path, const TemporaryOwner& owner);

// The name under which this process makes the file `path`: <path>.partial-<host>-<pid>.
std::filesystem::path PartialName(const std::filesystem::path& path);

// Removes what dead processes have left under PartialName(path), and returns how many.
int RemoveStalePartials(const std::filesystem::path& path);

// Writes `path` under PartialName, synced, and renames it, so that it is whole or as it was; what
// dead processes have left of it is removed.  Throws as WriteNewFile; then nothing new is left.
void ReplaceFile(const std::filesystem::path& path,
                 std::span<const std::span<const std::byte>> pieces, const WriteContext& context);

}  // namespace trainer
