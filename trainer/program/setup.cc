// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/setup.h"

#include <algorithm>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/data/files/read_ahead.h"

namespace trainer {

TrainConfig ConfigOfLaunch(const TrainConfig& logged, int restart_count,
                           const std::string& program_version) {
  TrainConfig config = logged;
  config.resume = logged.resume || restart_count > 0;
  config.program_version = program_version;
  return config;
}

BackendOptions MakeBackendOptions(const Options& options, int local_rank,
                                  std::shared_ptr<PlanCache> plans) {
  BackendOptions backend;
  backend.threads = options.threads;
  backend.local_rank = local_rank;
  if (options.precision == "fp16") backend.compute_type = DType::kFloat16;
  if (options.precision == "bf16") backend.compute_type = DType::kBFloat16;
  backend.tf32 = options.precision == "tf32";
  backend.deterministic = options.deterministic;
  backend.plans = std::move(plans);
  return backend;
}

std::unique_ptr<SpanRecorder> MakeSpanRecorder(const Options& options) {
  if (options.trace.count == 0) return nullptr;
  // Of each step: its phases, some all-reduces, and its images; and the images of batches ahead.
  constexpr std::int64_t kOthers = 100;
  constexpr std::int64_t kMax = 2'000'000;
  const std::int64_t steps = options.trace.count + options.prefetch + 1;
  const std::int64_t of_step = (std::min(options.batch_size, kMax) + kOthers) * options.accumulate;
  return std::make_unique<SpanRecorder>(static_cast<std::size_t>(std::min(steps * of_step, kMax)));
}

RunMemory MakeRunMemory(const Options& options, const Backend& backend, int ranks, int cores) {
  const auto or_cores = [&](int threads) { return threads > 0 ? threads : cores; };
  const bool reads_files = !options.data_dir.empty() && options.mode != RunMode::kPredict;
  const int sources = (IsTraining(options.mode) ? 1 : 0) + (IsEvaluating(options.mode) ? 1 : 0);
  RunMemory memory;
  memory.is_host = backend.is_host();
  memory.ranks = ranks;
  if (IsTraining(options.mode)) memory.accumulate = options.accumulate;
  memory.rolls_back = KeepsWeights(options.mode) && options.on_nan == OnNan::kRollback;
  memory.host_batches = std::int64_t{sources} * (reads_files ? options.prefetch + 1 : 1);
  memory.device_batches = std::int64_t{2} * std::max(1, sources);
  const int data_threads = or_cores(options.data_threads);
  memory.host_records =
      reads_files ? static_cast<std::size_t>(sources) * ReadAheadFor(data_threads, 0).bytes : 0;
  memory.host_threads =
      (memory.is_host ? or_cores(options.threads) : 1) + (reads_files ? sources * data_threads : 0);
  return memory;
}

std::vector<ConsistencyItem> RunConsistencyItems(const Options& options,
                                                 const std::string& program_version) {
  std::vector<ConsistencyItem> items = SharedOptions(options);
  items.push_back({"ddltraind", "ddltraind " + program_version});
  return items;
}

ConsistencyItem BackendConsistencyItem(const Backend& backend) {
  return {"back end", "the back end " + backend.name() + " (" + backend.arithmetic() + ")"};
}

}  // namespace trainer
