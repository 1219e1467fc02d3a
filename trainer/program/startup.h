// SPDX-License-Identifier: Apache-2.0
//
// What a run starts with: its back end, the autotuning results of earlier runs for it, and the
// communicators between its ranks.

#pragma once

#include <filesystem>
#include <memory>

#include "launcher/protocol/rank_environment.h"
#include "trainer/backend/backend.h"
#include "trainer/backend/plan_cache.h"
#include "trainer/comm/communicator.h"
#include "trainer/core/span_recorder.h"
#include "trainer/options/options.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/monitor/hang_watchdog.h"

namespace trainer {

// The back end that --backend asks for.  Throws Error(EX_UNAVAILABLE) for --backend=auto in a job
// that was granted GPUs and has none that works: it is not to train on a few cores, a hundred times
// slower, for as long as its time limit lets it.  And as MakeBackend throws.
// `plans`: as BackendOptions has them.
std::unique_ptr<Backend> ChooseBackendOf(const Options& options, const launcher::RankInfo& rank,
                                         std::shared_ptr<PlanCache> plans, const Logger& log);

// Waits until all ranks of the run are there, which `watch` looks after.  `watch` and `spans` may
// be null.  Throws as MakeCommunicator does.
std::unique_ptr<Communicator> ConnectRanks(const launcher::RankInfo& rank, HangWatchdog* watch,
                                           SpanRecorder* spans);

// Collective.  NCCL beside `host`, or null where `host` sums the gradients itself, by --comm and
// what is there.  Throws Error(EX_CONFIG) where NCCL was asked for and cannot be.
std::unique_ptr<Communicator> MakeGradientCommunicator(const Options& options, Backend& backend,
                                                       Communicator& host, const Logger& log);

// The file of --plan_cache: the fastest algorithms on the GPUs of a run, so that its next start
// times nothing and computes with the same ones (doc/decisions/0047).

// "": none.
std::filesystem::path PlanPath(const Options& options);

// For one thread.
class PlanCacheFile {
 public:
  // Reads the file, as every rank does.  One that is not there is empty, as is, with a warning, one
  // that cannot be read or is damaged: all that is lost is time.  One of a newer format is left as
  // it is.  `path` may be "".
  PlanCacheFile(std::filesystem::path path, Logger log);

  const std::shared_ptr<PlanCache>& plans() const { return plans_; }

  // Writes what was added since; for rank 0.  Next to nothing where that is nothing.  Where it
  // cannot be written, a warning says so, once.
  void Keep();

 private:
  const std::filesystem::path path_;
  const Logger log_;
  const std::shared_ptr<PlanCache> plans_;
  bool can_write_;
};

}  // namespace trainer
