// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/variability_files.h"

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

namespace {

constexpr const char* kCsvTitles =
    R"("Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z",)"
    R"("Registers Per Thread","Static SMem","Dynamic SMem","Size","Throughput","SrcMemType",)"
    R"("DstMemType","Device","Context","Stream","System","Name","Correlation_ID")"
    "\n"
    "s,ms,,,,,,,,B,B,MB,GB/s,,,,,,,,\n";

std::string Plain(std::string text) {
  for (char& c : text) {
    if (c == ',' || c == '"' || c == '\n') c = ' ';
  }
  return text;
}

std::string SystemRow(const std::string& device, double seconds, const std::string& value,
                      const char* name) {
  return fmt::format(R"({:.6f},,,,,,,,,,,,,,,"{}",,,"{}","{}",)"
                     "\n",
                     seconds, Plain(device), value, name);
}

}  // namespace

std::string NvprofHead(std::int64_t process, const std::string& who) {
  return fmt::format("=={}== {}\n=={}== Profiling result:\n", process, who, process) + kCsvTitles;
}

std::string NvprofKernel(const std::string& device, double begin_seconds, double seconds,
                         const std::string& name, std::int64_t correlation) {
  constexpr double kMilliseconds = 1e3;
  return fmt::format(R"({:.6f},{:.6f},,,,,,,,,,,,,,"{}","1","1",,"{}",{})"
                     "\n",
                     begin_seconds, seconds * kMilliseconds, Plain(device), Plain(name),
                     correlation);
}

std::string NvprofState(const std::string& device, double seconds, const DeviceState& state) {
  std::string rows;
  if (state.compute_mhz) {
    rows += SystemRow(device, seconds,
                      fmt::format("{}/{}", *state.compute_mhz, state.memory_mhz.value_or(0)),
                      "[SM/Memory Clock (MHz)]");
  }
  if (state.celsius) {
    rows += SystemRow(device, seconds, fmt::format("{}", *state.celsius), "[Temperature (C)]");
  }
  if (state.milliwatts) {
    rows += SystemRow(device, seconds,
                      fmt::format("{}/{}", *state.milliwatts, state.limit_milliwatts.value_or(0)),
                      "[Power/Limit (mW)]");
  }
  return rows;
}

}  // namespace trainer
