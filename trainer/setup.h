// SPDX-License-Identifier: Apache-2.0
//
// From what the user wrote to what the parts of the trainer take.  Pure but for MakeSources, which
// opens files.

#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "launcher/rank_environment.h"
#include "trainer/backend/registry.h"
#include "trainer/comm/factory.h"
#include "trainer/data/source.h"
#include "trainer/options.h"
#include "trainer/train/config.h"

namespace trainer {

// Where checkpoints are, which all ranks see.
std::filesystem::path ModelFolder(const Options& options);

TrainConfig MakeTrainConfig(const Options& options, const std::string& program_version);

BackendOptions MakeBackendOptions(const Options& options, int local_rank);

// `started_tasks`: comm/factory.h.
CommOptions MakeCommOptions(const launcher::RankInfo& rank, int started_tasks);

// One of a run's sources, or null where its mode has no use for it.
struct Sources {
  std::unique_ptr<Source> training;
  std::unique_ptr<Source> evaluation;
};
// `data_threads`: of this rank.  `on_bad_record`: told of each record that is skipped.  Throws
// Error(EX_DATAERR) naming the folder or file that cannot be used.
Sources MakeSources(const Options& options, const launcher::RankInfo& rank, int data_threads,
                    const std::function<void(const std::string&)>& on_bad_record);

}  // namespace trainer
