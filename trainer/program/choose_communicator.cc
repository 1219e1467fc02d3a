// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/choose_communicator.h"

#include <string>

#include "trainer/comm/nccl_communicator.h"
#include "trainer/comm/nccl_obstacle.h"
#include "trainer/core/error.h"
#include "trainer/program/launch_environment.h"
#include "trainer/train/step/nccl_deps.h"

namespace trainer {

std::unique_ptr<Communicator> ConnectRanks(const launcher::RankInfo& rank, HangWatchdog* watch,
                                           SpanRecorder* spans) {
  const CommOptions options = MakeCommOptions(rank, EnvironmentVariable, spans);
  if (watch == nullptr) return MakeCommunicator(options);
  watch->BeginWaiting();
  std::unique_ptr<Communicator> communicator = MakeCommunicator(options);
  watch->Pause();
  return communicator;
}

std::unique_ptr<Communicator> MakeGradientCommunicator(const Options& options, Backend& backend,
                                                       Communicator& host, const Logger& log) {
  const bool all_reduces_gradients = host.size() > 1 && IsTraining(options.mode);
  if (!all_reduces_gradients || options.comm == "mpi") return nullptr;
  const std::string obstacle = NcclObstacle(
      host, {.gpu = backend.device_id(), .multi_rank = EnvironmentVariable(kMultiRankVariable)});
  if (!obstacle.empty()) {
    if (options.comm == "nccl") throw Error(EX_CONFIG, "--comm=nccl cannot be: " + obstacle);
    if (options.reduce_precision == ReducePrecision::k16Bit) {
      throw Error(EX_CONFIG, "--reduce_precision=16bit needs NCCL, which cannot be: " + obstacle);
    }
    if (!backend.is_host() && host.rank() == 0) {
      log->warn("gradients are summed in host memory, not by NCCL: {}", obstacle);
    }
    return nullptr;
  }
  std::unique_ptr<Communicator> nccl =
      MakeNcclCommunicator(host, MakeNcclDeps(backend), {.max_ctas = options.nccl_max_ctas});
  if (host.rank() == 0) log->info("gradients: {}", nccl->description());
  return nccl;
}

}  // namespace trainer
