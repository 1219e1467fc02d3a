// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/choose_backend.h"

#include <string>
#include <utility>

#include "support/counted.h"
#include "trainer/core/error.h"
#include "trainer/program/launch_environment.h"
#include "trainer/program/setup.h"

namespace trainer {
namespace {

std::string NameOfBackend(const Options& options, const launcher::RankInfo& rank,
                          const Logger& log) {
  if (options.backend != "auto") return options.backend;
  const BackendChoice choice = ChooseBackend();
  if (choice.why_no_gpu.empty()) return choice.name;
  if (rank.gpus > 0) {
    throw Error(EX_UNAVAILABLE, "the job was granted " + support::Counted(rank.gpus, "GPU") +
                                    " on this node, but " + choice.why_no_gpu +
                                    "; --backend=" + choice.name + " computes without");
  }
  if (rank.rank == 0) {
    log->warn("computing on the CPU: {} (--backend={} says that this is meant)", choice.why_no_gpu,
              choice.name);
  }
  return choice.name;
}

}  // namespace

std::unique_ptr<Backend> ChooseBackendOf(const Options& options, const launcher::RankInfo& rank,
                                         std::shared_ptr<PlanCache> plans, const Logger& log) {
  BackendOptions wanted = MakeBackendOptions(options, rank.local_rank, std::move(plans));
  // OpenMP counts cores and knows no quota.
  if (wanted.threads == 0 && !EnvironmentVariable("OMP_NUM_THREADS")) {
    wanted.threads = ThreadsOfRank(rank.local_world_size);
  }
  return MakeBackend(NameOfBackend(options, rank, log), wanted);
}

}  // namespace trainer
