// SPDX-License-Identifier: Apache-2.0
//
// From what the user wrote to what the parts of the trainer take.  Pure but for IdentityOfData,
// which reads the data directory.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/backend/registry.h"
#include "trainer/core/consistency_item.h"
#include "trainer/core/data_identity.h"
#include "trainer/core/span_recorder.h"
#include "trainer/data/class_list.h"
#include "trainer/options/options.h"
#include "trainer/program/data_loaders.h"
#include "trainer/program/run_memory.h"
#include "trainer/train/config.h"

namespace trainer {

// Sets batch_size, accumulate and short_ranks so that a step of all `ranks` has global_batch_size
// images (SplitImages; batch_size is the most that fits, or 0), in modes that train; in others
// batch_size alone, where it is 0.  Does nothing where global_batch_size is 0.  Throws
// Error(EX_CONFIG) where the images cannot be split, with the nearest numbers that can.
void SplitStep(Options& options, int ranks);

// A line for people on how a step is split; "" where that was not asked for.  REQUIRES: SplitStep
// was called.
std::string DescribeStep(const Options& options, int ranks);

// What was told, for this launch of the program.  A launch that was started again by ddlrun goes
// on: what it finds is its own, which was refused at first where there was anything else.
TrainConfig ConfigOfLaunch(const TrainConfig& logged, int restart_count,
                           const std::string& program_version);

BackendOptions MakeBackendOptions(const Options& options, int local_rank,
                                  std::shared_ptr<PlanCache> plans);

// For --trace; null without it.
std::unique_ptr<SpanRecorder> MakeSpanRecorder(const Options& options);

// What a run has of memory beside its network.  `cores` that this rank may use.
RunMemory MakeRunMemory(const Options& options, const Backend& backend, int ranks, int cores);

// What ranks must have in common, for CheckRankConsistency: what they were told, what they compute
// with.
std::vector<ConsistencyItem> RunConsistencyItems(const Options& options,
                                                 const std::string& program_version);
ConsistencyItem BackendConsistencyItem(const Backend& backend);

// By name, as a person would write it: the options that change what is learned, and the back end.
// Not what a checkpoint has fields of its own for, nor what a run is refused for.
std::map<std::string, std::string> RecordedSettings(const Options& options, const Backend& backend);

// The splits that `sources` read, and what their labels stand for: `classes`, which may be none.
// Throws Error(EX_DATAERR) if the data directory cannot be read.
DataIdentity IdentityOfData(const Options& options, const DataLoaders& sources,
                            const std::vector<ImageClass>& classes);

}  // namespace trainer
