// SPDX-License-Identifier: Apache-2.0
//
// The directories that a run writes to, before its first step: what cannot be written is known
// then, not after days of training.

#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "trainer/checkpoint/run_lock.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/config.h"

namespace trainer {

// With what is missing above it.  Throws Error(EX_OSERR) that says to give another `option`.
void MakeDirectory(const std::filesystem::path& directory, const std::string& option);

// Whether `file`, as it will be once it is renamed into its place, can be written is known for
// certain only by writing beside it.  Throws Error(EX_OSERR) that names it and says to give
// `instead`.
void TryToWrite(const std::filesystem::path& file, std::string_view instead);

// For rank 0 alone, of any mode.  Makes results_dir, and tries whether the files of --trace and
// --profile can be written; for a training that keeps its weights also makes and locks model_dir,
// tries whether --export_dir and --dump_state can be written, and removes what killed runs have
// left half written in them.  The lock, or null; to be kept until the run ends. Throws Error that
// names the directory and the option: EX_OSERR, or as LockRun.
std::unique_ptr<RunLock> PrepareDirectories(const TrainConfig& config,
                                            const RunLockOptions& lock_options, const Logger& log);

}  // namespace trainer
