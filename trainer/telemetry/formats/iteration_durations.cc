// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/iteration_durations.h"

#include <fmt/format.h>

#include <cmath>

#include "trainer/telemetry/text/python_format.h"

namespace trainer {

std::string DurationsHead(int rank, int ranks, int device) {
  return fmt::format("rank = {}, world_size = {}, device_ids = {}\n", rank, ranks, device);
}

std::string IterationDuration(std::int64_t iteration, int device, double seconds) {
  return fmt::format("\nIteration Duration {} {} : {}\n", iteration, device, PythonFloat(seconds));
}

std::string TrainingTime(double seconds) {
  constexpr std::int64_t kMicroseconds = 1'000'000;
  const std::int64_t all = std::llround(seconds * kMicroseconds);
  const std::int64_t whole = all / kMicroseconds;
  return fmt::format("\nTraining time: {}:{:02}:{:02}.{:06}\n", whole / 3600, whole / 60 % 60,
                     whole % 60, all % kMicroseconds);
}

}  // namespace trainer
