// SPDX-License-Identifier: Apache-2.0
//
// Finds and reads checkpoints.  What is read has been verified against its checksums; one that is
// damaged or cannot be read is passed over for the one before it.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/core/error.h"

namespace trainer {

struct Checkpoint {
  std::filesystem::path directory;
  Manifest manifest;
  SafetensorsFile model;
  SafetensorsFile optimizer;
  // Moving averages, by the names of the model; nothing: it was saved without.
  std::optional<SafetensorsFile> average;
  std::vector<std::filesystem::path> passed_over;  // newer ones that could not be used
};

struct CheckpointPath {
  std::int64_t step = 0;
  std::filesystem::path directory;
};

// Throws Error(EX_USAGE) where `model_dir` is a file, such as one of weights.
void RequireDirectory(const std::filesystem::path& model_dir);

// What is wrong with a `model_dir` that is itself a checkpoint or has some of its own, outside of a
// directory `checkpoints`, and what to give instead, as a sentence; "" for any other.  A run there
// would begin anew.  Never throws for what it cannot read.
std::string DescribeMisplaced(const std::filesystem::path& model_dir);

// Every directory <model_dir>/checkpoints/step-<digits>, newest first, valid or not.  Empty if
// there is none.  Throws as RequireDirectory, and Error(EX_OSERR) when the directory is there but
// cannot be read.
std::vector<CheckpointPath> ListCheckpoints(const std::filesystem::path& model_dir);

// Whether the checkpoint that ReadCheckpoint has thrown `problem` for is to blame: it is damaged,
// or cannot be read (EIO, ESTALE, EACCES, a link loop).  Not where this process lacks memory or
// descriptors, and not where the checkpoint is of a newer format (EX_CONFIG), which is as good as
// any.
bool IsUnusable(const Error& problem);

// The manifest alone.  Throws as ReadCheckpoint does.
Manifest ReadManifest(const std::filesystem::path& directory);

// The same, of a checkpoint that looks whole: the files that the manifest lists are there, in the
// sizes that it says.  Their content is not read.  Throws as ReadCheckpoint does.
Manifest ReadManifestOfWhole(const std::filesystem::path& directory);
// The same; nullopt for one that is damaged.  Throws for one that cannot be read, which may be
// whole.
std::optional<Manifest> ReadManifestIfWhole(const std::filesystem::path& directory);

// Throws Error(EX_DATAERR) naming the file and what is wrong: missing, of another size, a checksum
// (then the tensor is named), a malformed file; Error(EX_OSERR) for one that cannot be read;
// Error(EX_CONFIG) for one of a newer format.
Checkpoint ReadCheckpoint(const std::filesystem::path& directory);

// The checkpoint of `step`, with the newer ones as passed over.  Throws as ReadCheckpoint, and
// Error(EX_USAGE) that names those there are where there is none of this step.
Checkpoint ReadCheckpointOfStep(const std::filesystem::path& model_dir, std::int64_t step);

// The newest valid checkpoint; nullopt if model_dir has no checkpoints.  Each unusable one that is
// passed over is told to `warn`, one line.  Throws Error if there are checkpoints and none is
// valid, for to start anew over them is the user's decision: EX_OSERR where one could not be read,
// for then a later try may succeed, else EX_DATAERR.  One of a newer format is not passed over, for
// so is its loss: EX_CONFIG.
std::optional<Checkpoint> ReadNewestCheckpoint(const std::filesystem::path& model_dir,
                                               const std::function<void(const std::string&)>& warn);

}  // namespace trainer
