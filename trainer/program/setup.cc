// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "support/number.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"
#include "trainer/data/class_list.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/read_ahead.h"
#include "trainer/options/option_names.h"

namespace trainer {
namespace {

// Those that can be split, the nearest below and the nearest above `images`: "36 or 38".
std::string NearestThatSplit(std::int64_t images, std::int64_t max, int ranks) {
  std::int64_t below = images - 1;
  while (below > 0 && !SplitImages(below, max, ranks)) --below;
  std::int64_t above = images + 1;
  while (!SplitImages(above, max, ranks)) ++above;
  return below > 0 ? fmt::format("{} or {}", below, above) : fmt::format("{}", above);
}

}  // namespace

void SplitStep(Options& options, int ranks) {
  const std::int64_t images = options.global_batch_size;
  if (images == 0) return;
  if (!IsTraining(options.mode)) {
    if (options.batch_size == 0) options.batch_size = std::max<std::int64_t>(1, images / ranks);
    return;
  }
  const std::int64_t max = options.batch_size;
  const auto split = SplitImages(images, max, ranks);
  if (!split && images < ranks) {
    throw Error(EX_CONFIG,
                fmt::format("--global_batch_size={} is less than an image for each of {} "
                            "ranks: give {} or more, or start fewer ranks",
                            images, ranks, ranks));
  }
  if (!split) {
    throw Error(
        EX_CONFIG,
        fmt::format("--global_batch_size={}: {} cannot compute so many images in batches of equal "
                    "size{}, but for very small ones: give {}, or start another number of ranks",
                    images, support::Counted(ranks, "rank"),
                    max == 0 ? "" : fmt::format(" up to --batch_size={}", max),
                    NearestThatSplit(images, max, ranks)));
  }
  options.batch_size = split->batch_size;
  options.accumulate = split->accumulate;
  options.short_ranks = split->short_ranks;
}

std::string DescribeStep(const Options& options, int ranks) {
  if (options.global_batch_size == 0 || !IsTraining(options.mode)) return "";
  const GlobalBatch batch = GlobalBatchOf(options, ranks);
  const std::string line =
      fmt::format("--global_batch_size={}: {}", batch.images(), DescribeSplit(batch));
  if (batch.short_ranks == 0) return line;
  return line + fmt::format("; {} {} {} in a step, the others {}", ranks - batch.short_ranks,
                            ranks - batch.short_ranks == 1 ? "computes" : "compute",
                            batch.accumulate, batch.accumulate - 1);
}

TrainConfig ConfigOfLaunch(const TrainConfig& logged, int restart_count,
                           const std::string& program_version) {
  TrainConfig config = logged;
  config.resume = logged.resume || restart_count > 0;
  if (restart_count > 0) config.resume_from = -1;  // the newest is of this job
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
  backend.programmatic_launch = options.programmatic_launch;
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
  memory.replays = IsTraining(options.mode) && options.replay_check > 0;
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

namespace {

std::string ChecksumOf(const std::string& text) {
  return fmt::format("{:08x}", Crc32c(std::as_bytes(std::span(text))));
}

// Of the lines of ddldata.manifest; "" where there is none.
std::string ChecksumInManifest(const std::string& data_dir, Split split) {
  std::optional<std::vector<ShardSummary>> shards = ReadShardManifest(data_dir);
  if (!shards) return "";
  std::erase_if(*shards, [&](const ShardSummary& shard) {
    return !shard.name.starts_with(FilePrefix(split));
  });
  return ChecksumOf(FormatShardManifest(*shards));
}

// Directories may be moved or mounted elsewhere: only the files' own names count.
SplitIdentity IdentityOfSplit(const std::string& data_dir, Split split, const DataLoader* source) {
  if (source == nullptr) return {};
  if (data_dir.empty()) return {split == Split::kTrain ? "synthetic images" : "", ""};
  std::string listing;
  const std::vector<std::string> files = FindDataFiles(data_dir, split);
  for (const std::string& path : files) {
    const std::filesystem::path file(path);
    std::error_code ignored;
    listing +=
        fmt::format("{} {}\n", file.filename().string(), std::filesystem::file_size(file, ignored));
  }
  return {fmt::format("{} images in {} files, listing {}", source->samples(), files.size(),
                      ChecksumOf(listing)),
          ChecksumInManifest(data_dir, split)};
}

}  // namespace

DataIdentity IdentityOfData(const Options& options, const DataLoaders& sources,
                            const std::vector<ImageClass>& classes) {
  DataIdentity data;
  for (const ImageClass& one : classes) data.class_names.push_back(NameAsText(one.name));
  data.training = IdentityOfSplit(options.data_dir, Split::kTrain, sources.training.get());
  data.validation = IdentityOfSplit(options.data_dir, Split::kValidation, sources.evaluation.get());
  return data;
}

std::map<std::string, std::string> RecordedSettings(const Options& options,
                                                    const Backend& backend) {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  const ScheduleConfig& schedule = options.schedule;
  const std::string loss_scale =
      text(options.loss_scale) + (options.use_static_loss_scaling ? " static" : "");
  std::map<std::string, std::string> settings = {
      {"--image_size", text(options.image_size)},
      {"--augment", NameOf(kAugments, options.augment)},
      {"--augmentation", NameOf(kAugmentations, options.augmentation)},
      {"--shuffle", NameOf(kShuffles, options.shuffle)},
      {"--mixup", text(options.mixup)},
      {"--bad_records", NameOf(kBadRecords, options.bad_records)},
      {"--batch_size", text(options.batch_size)},
      {"--accumulate", text(options.accumulate)},
      {"--num_iter", text(schedule.num_iter)},
      {"--iter_unit", NameOf(kIterUnits, schedule.iter_unit)},
      {"--lr_init", text(schedule.lr_init)},
      {"--lr_warmup_epochs", text(schedule.lr_warmup_epochs)},
      {"--lr_schedule", NameOf(kRateDecays, schedule.lr_schedule)},
      {"--lr_scaling", NameOf(kRateScalings, schedule.lr_scaling)},
      {"--lr_end", text(schedule.lr_end)},
      {"--lr_decay_steps", text(schedule.lr_decay_steps)},
      {"--momentum", text(options.momentum)},
      {"--weight_decay", text(options.weight_decay)},
      {"--label_smoothing", text(options.label_smoothing)},
      {"--ema", options.ema > 0 ? text(options.ema) : "off"},
      {"--freeze_batch_norm", text(options.freeze_batch_norm)},
      {"--precision", options.precision},
      {"--loss_scale", loss_scale},
      {"--reduce_precision", NameOf(kReducePrecisions, options.reduce_precision)},
      {"--backend", backend.name()},
  };
  if (backend.threads() > 0) settings.emplace("--threads", text(backend.threads()));
  return settings;
}

}  // namespace trainer
