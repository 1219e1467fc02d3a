// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/recorded_settings.h"

#include <fmt/format.h>

#include <filesystem>
#include <span>
#include <system_error>

#include "trainer/core/crc32c.h"
#include "trainer/data/files/data_files.h"
#include "trainer/options/option_names.h"

namespace trainer {
namespace {

// Directories may be moved or mounted elsewhere: only the files' own names count.
std::string DescribeData(const Options& options, std::int64_t images) {
  if (options.data_dir.empty()) return "synthetic images";
  std::string listing;
  const std::vector<std::string> files = FindDataFiles(options.data_dir, Split::kTrain);
  for (const std::string& path : files) {
    const std::filesystem::path file(path);
    std::error_code ignored;
    listing +=
        fmt::format("{} {}\n", file.filename().string(), std::filesystem::file_size(file, ignored));
  }
  return fmt::format("{} images in {} files, listing {:08x}", images, files.size(),
                     Crc32c(std::as_bytes(std::span(listing))));
}

}  // namespace

std::map<std::string, std::string> RecordedSettings(const Options& options,
                                                    const std::string& backend,
                                                    std::int64_t images) {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  const ScheduleConfig& schedule = options.schedule;
  const std::string loss_scale =
      text(options.loss_scale) + (options.use_static_loss_scaling ? " static" : "");
  return {
      {"data", DescribeData(options, images)},
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
      {"--backend", backend},
  };
}

}  // namespace trainer
