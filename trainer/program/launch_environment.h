// SPDX-License-Identifier: Apache-2.0
//
// What the environment and the machine say of this rank.  Pure but for EnvironmentVariable and
// ThreadsOfRank.

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "launcher/protocol/rank_environment.h"
#include "trainer/comm/factory.h"
#include "trainer/core/span_recorder.h"

namespace trainer {

// The value of a variable of the environment, or nullopt where it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string&)>;

// Of this process.
std::optional<std::string> EnvironmentVariable(const std::string& name);

// How many CPUs of the `usable` ones are a rank's own: all, or where these are all that the machine
// has `online`, so that nobody has bound the rank, an equal part for each of `local_world_size`
// ranks.  At least 1.  Pure.
int CpusOfRank(int usable, int online, int local_world_size);

// How many threads a rank of this node may start: one for each of its CPUs, or fewer where the CPU
// quota of its control group is less for each of `local_world_size` ranks.  At least 1.
int ThreadsOfRank(int local_world_size);

// What the environment says of this rank.  Throws Error(EX_CONFIG) as
// launcher::ReadRankEnvironment throws.
launcher::RankInfo ReadRank(const EnvironmentLookup& get);

// The slice of a GPU that CUDA shows this process, "MIG-...": the first entry of
// CUDA_VISIBLE_DEVICES where it is one; "" where a GPU is whole.
std::string SliceOfGpu(const EnvironmentLookup& get);

// How many ranks the starter says it made; 0 if it says nothing.  Throws Error(EX_CONFIG) where
// that is no number.
int StartedTasks(const EnvironmentLookup& get);

// `spans`: comm/factory.h.  Throws as StartedTasks does.
CommOptions MakeCommOptions(const launcher::RankInfo& rank, const EnvironmentLookup& get,
                            SpanRecorder* spans);

}  // namespace trainer
