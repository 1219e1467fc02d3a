// SPDX-License-Identifier: Apache-2.0
//
// What evaluations have found of the weights in checkpoints.  Each manifest has that of its own
// weights, so which is the best follows from those that are there, and from nothing else.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "trainer/checkpoint/writer.h"

namespace trainer {

struct EvaluatedCheckpoint {
  std::int64_t step = 0;
  std::filesystem::path directory;
  double top1 = 0;  // fraction of 1
};

struct EvaluatedCheckpoints {
  std::vector<EvaluatedCheckpoint> known;  // newest first
  // That cannot be read at this time, and may be better than all that are known.
  std::vector<std::filesystem::path> unreadable;
};

// The checkpoints of model_dir that were evaluated and look whole (ReadManifestIfWhole).  Throws as
// ListCheckpoints.
EvaluatedCheckpoints ListEvaluated(const std::filesystem::path& model_dir);

// The one with the highest top-1, of equal ones the oldest; nullopt if there is none.
std::optional<EvaluatedCheckpoint> BestOf(const std::vector<EvaluatedCheckpoint>& evaluated);

// Notes what an evaluation has found of the weights of `checkpoint`, a directory that
// WriteCheckpoint has returned.  A crash leaves its manifest either as it was or as it is to be.
// Throws as ReadManifest, or Error(EX_OSERR); then it is as it was, but where the last call fails,
// after which a crash of the machine may bring back what was.
void NoteTop1(const std::filesystem::path& checkpoint, double top1, const WriteHook& hook = {});

}  // namespace trainer
