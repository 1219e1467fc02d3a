// SPDX-License-Identifier: Apache-2.0
//
// What ddlctl does with the checkpoints of a training, whether it runs or not: reads them, and
// writes one file of weights.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace ddlctl {

// Gets lines with their ends.
using Output = std::function<void(const std::string&)>;

// A table of the checkpoints in `model_dir`, newest first, with a line of names above.  What each
// is worth is told by its manifest and the sizes of its files; the checksums of tensors are not
// read. Throws Error(EX_NOINPUT) where there is no checkpoint; Error(EX_OSERR) where the directory
// cannot be read.
std::string CheckpointTable(const std::filesystem::path& model_dir);

// Reads all of the checkpoint of `step`, or of every one, oldest first, and compares all checksums.
// Each that is good is a line to `good`, each other one a line to `bad`.  Returns EX_OK, EX_DATAERR
// where one is damaged, else EX_OSERR where one cannot be read.  One that a training removes
// meanwhile is neither.  Throws Error(EX_NOINPUT) where there is none, or none of that step.
int VerifyCheckpoints(const std::filesystem::path& model_dir, std::optional<std::int64_t> step,
                      const Output& good, const Output& bad);

// Writes the weights of the checkpoint of `step`, or of the newest valid one, to the new file
// `file`, as ddltraind's --export_dir does, byte for byte; it is there whole or not at all.
// Newer ones that are passed over are a line each to `warn`.  Returns what was done, one line.
// Throws Error(EX_NOINPUT) as above; Error(EX_USAGE) where `file` is there already;
// Error(EX_DATAERR) for a damaged checkpoint; Error(EX_OSERR).
std::string ExportWeights(const std::filesystem::path& model_dir, std::optional<std::int64_t> step,
                          const std::filesystem::path& file, const Output& warn);

}  // namespace ddlctl
