// SPDX-License-Identifier: Apache-2.0
//
// From what the user wrote to what the parts of the trainer take.  Pure.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/backend/registry.h"
#include "trainer/core/consistency_item.h"
#include "trainer/core/span_recorder.h"
#include "trainer/options/options.h"
#include "trainer/program/memory_estimate.h"
#include "trainer/train/config.h"

namespace trainer {

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

}  // namespace trainer
