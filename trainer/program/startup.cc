// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/startup.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "support/file.h"
#include "support/format_version.h"
#include "support/number.h"
#include "trainer/comm/nccl_communicator.h"
#include "trainer/comm/nccl_obstacle.h"
#include "trainer/core/error.h"
#include "trainer/program/launch_environment.h"
#include "trainer/program/setup.h"
#include "trainer/train/step/gradients.h"

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

namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{16} << 20;

std::string WhyNotRead(const support::WholeFile& file) {
  if (file.problem == support::ReadProblem::kNone) return "its checksum is wrong";
  if (file.problem == support::ReadProblem::kTooLong) return "it is longer than 16 MiB";
  if (file.problem == support::ReadProblem::kNotRegular) return "it is no regular file";
  return std::strerror(file.error);
}

}  // namespace

std::filesystem::path PlanPath(const Options& options) {
  if (options.plan_cache == "off") return {};
  if (options.plan_cache != "auto") return options.plan_cache;
  if (!KeepsWeights(options.mode)) return {};
  return ModelDirectory(options) / "plans.txt";
}

PlanCacheFile::PlanCacheFile(std::filesystem::path path, Logger log)
    : path_(std::move(path)),
      log_(std::move(log)),
      plans_(std::make_shared<PlanCache>()),
      can_write_(!path_.empty()) {
  if (path_.empty()) return;
  const support::WholeFile file = support::ReadWholeFile(path_, kMaxBytes);
  if (file.problem == support::ReadProblem::kOpen && file.error == ENOENT) return;
  if (file.problem == support::ReadProblem::kNone && plans_->Read(file.content)) return;
  const int format = support::FormatVersion(file.content, kPlanBeginning).value_or(0);
  if (format > kPlanFormat) {
    can_write_ = false;
    log_->warn("cannot read {} (--plan_cache): {}; this run times algorithms and keeps nothing",
               path_.string(), support::DescribeNewerFormat("plans", format, kPlanFormat));
    return;
  }
  log_->warn("cannot read {} (--plan_cache): {}; algorithms are timed again", path_.string(),
             WhyNotRead(file));
}

void PlanCacheFile::Keep() {
  if (!can_write_) return;
  const std::optional<std::string> text = plans_->TakeNewEntries();
  if (!text) return;
  const int error = support::ReplaceFile(path_, *text);
  if (error == 0) return;
  can_write_ = false;
  log_->warn("cannot write {} (--plan_cache): {}; the next start times algorithms again",
             path_.string(), std::strerror(error));
}

}  // namespace trainer
