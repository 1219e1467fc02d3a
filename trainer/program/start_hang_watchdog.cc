// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/start_hang_watchdog.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/outputs/report_error.h"

namespace trainer {
namespace {

// What all ranks of a run call it before they have met.
std::string RunName(const launcher::RankInfo& rank) {
  if (rank.world_size == 1) return "process-" + std::to_string(getpid());
  return std::to_string(rank.master_port) + "-" + std::to_string(rank.restart_count);
}

}  // namespace

std::unique_ptr<HangWatchdog> StartHangWatchdog(const Options& options,
                                                const launcher::RankInfo& rank, RedrawnLine& line) {
  if (options.hang_floor_seconds == 0) return nullptr;
  HangWatchdogOptions watch = {
      .floor_seconds = options.hang_floor_seconds,
      .model_dir = ModelDirectory(options),
      .run_name = RunName(rank),
      .rank = rank.rank,
      .size = rank.world_size,
      .host = rank.host,
      .batches = options.accumulate,
      .on_wait = [rank, &line](const std::string& text) { PrintMessage(line, rank, text); },
      .on_hang =
          [rank, &line](const std::string& report) {
            PrintMessage(line, rank, report);
            // MPI_Abort might hang as well; the starter ends the other ranks.
            ::_exit(EX_SOFTWARE);
          }};
  return std::make_unique<HangWatchdog>(std::move(watch));
}

}  // namespace trainer
