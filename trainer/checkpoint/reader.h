// SPDX-License-Identifier: Apache-2.0
//
// Finds and reads checkpoints.  What is read has been verified against its checksums; a damaged one
// is passed over for the one before it.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"

namespace trainer {

struct Checkpoint {
  std::filesystem::path directory;
  Manifest manifest;
  SafetensorsFile model;
  SafetensorsFile optimizer;
};

struct CheckpointPath {
  std::int64_t step = 0;
  std::filesystem::path directory;
};

// Every directory <model_dir>/checkpoints/step-<digits>, newest first, valid or not.  Empty if
// there is none.  Throws Error(EX_OSERR) when the directory is there but cannot be read.
std::vector<CheckpointPath> ListCheckpoints(const std::filesystem::path& model_dir);

// The manifest alone.  Throws as ReadCheckpoint does.
Manifest ReadManifest(const std::filesystem::path& directory);

// Throws Error(EX_DATAERR) naming the file and what is wrong: missing, of another size, a checksum
// (then the tensor is named), a malformed file.
Checkpoint ReadCheckpoint(const std::filesystem::path& directory);

// The newest valid checkpoint; nullopt if model_dir has no checkpoints.  Each damaged one that is
// passed over is told to `warn`, one line.  Throws Error(EX_DATAERR) if there are checkpoints and
// none is valid: to start anew over them is the user's decision.
std::optional<Checkpoint> ReadNewestCheckpoint(const std::filesystem::path& model_dir,
                                               const std::function<void(const std::string&)>& warn);

}  // namespace trainer
