// SPDX-License-Identifier: Apache-2.0
//
// From what the user wrote to what the parts of the trainer take.  Pure but for MakeSources, which
// opens files.

#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/protocol/rank_environment.h"
#include "trainer/backend/registry.h"
#include "trainer/comm/factory.h"
#include "trainer/core/buffer.h"
#include "trainer/core/fact.h"
#include "trainer/core/span_recorder.h"
#include "trainer/data/source.h"
#include "trainer/options.h"
#include "trainer/telemetry/python_format.h"
#include "trainer/train/config.h"
#include "trainer/train/memory_needs.h"

namespace trainer {

// Where checkpoints are, which all ranks see.
std::filesystem::path ModelFolder(const Options& options);

TrainConfig MakeTrainConfig(const Options& options, const std::string& program_version);

BackendOptions MakeBackendOptions(const Options& options, int local_rank);

// The value of a variable of the environment, or nullopt where it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string&)>;

// What the environment says of this rank.  Throws Error(EX_CONFIG) as
// launcher::ReadRankEnvironment throws.
launcher::RankInfo ReadRank(const EnvironmentLookup& get);

// How many ranks the starter says it made; 0 if it says nothing.
int StartedTasks(const EnvironmentLookup& get);

// `started_tasks`, `spans`: comm/factory.h.
CommOptions MakeCommOptions(const launcher::RankInfo& rank, int started_tasks, SpanRecorder* spans);

// For --trace; null without it.
std::unique_ptr<SpanRecorder> MakeSpanRecorder(const Options& options);

// Where this user's runs on this node keep what they found by scanning data files; "" for
// --scan_cache=off.  In $XDG_RUNTIME_DIR, $SLURM_TMPDIR, $TMPDIR or /tmp, the first that can be
// written; it need not be there.
std::string ScanCacheFolder(const Options& options, const EnvironmentLookup& get);

// One of a run's sources, or null where its mode has no use for it.
struct Sources {
  std::unique_ptr<Source> training;
  std::unique_ptr<Source> evaluation;
};
// What sources are given.
struct SourceParts {
  int data_threads = 1;                                   // of this rank
  std::string scan_cache_dir;                             // of ScanCacheFolder
  std::function<void(const std::string&)> on_bad_record;  // told of each that is skipped
  AllocateMemory allocate = AllocateOrdinaryMemory;       // of batches; outlives the sources
  SpanRecorder* spans = nullptr;                          // of training; may be null
};
// Throws Error(EX_DATAERR) naming the folder or file that cannot be used.
Sources MakeSources(const Options& options, const launcher::RankInfo& rank,
                    const SourceParts& parts);

// What a run has of memory beside its network.  `cores` that this rank may use.
RunMemory MakeRunMemory(const Options& options, const Backend& backend, int ranks, int cores);

// What a run was told, by option, for machines to read; options without a value are left out.
LogFields LoggedParameters(const Options& options);

// What ranks must have in common, for RequireAgreement: what they were told, what they compute
// with, what they compute on.
std::vector<Fact> RunFacts(const Options& options, const std::string& program_version);
Fact BackendFact(const Backend& backend);
std::vector<Fact> DataFacts(const Sources& sources);

// What it took to find the records of both sources.
ScanCost CostOfScans(const Sources& sources);

}  // namespace trainer
