// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <span>
#include <utility>

#include "trainer/telemetry/formats/event_file.h"
#include "trainer/telemetry/formats/mllog.h"
#include "trainer/telemetry/formats/progress.h"
#include "trainer/telemetry/formats/prometheus_file.h"

namespace trainer {

std::span<const LogFormat* const> LogFormats() {
  static constexpr std::array kFormats = {&kMlLog, &kPrometheusFile, &kEventFile, &kJobComment};
  return kFormats;
}

std::vector<std::unique_ptr<TrainingLog>> OpenLogs(const LoggedLaunch& launch,
                                                   bool is_of_each_rank) {
  std::vector<std::unique_ptr<TrainingLog>> logs;
  for (const LogFormat* format : LogFormats()) {
    if (format->is_of_each_rank != is_of_each_rank) continue;
    if (auto log = format->open(launch)) logs.push_back(std::move(log));
  }
  return logs;
}

}  // namespace trainer
