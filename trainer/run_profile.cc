// SPDX-License-Identifier: Apache-2.0

#include "trainer/run_profile.h"

#include "trainer/backend/measured_backend.h"
#include "trainer/backend/peaks.h"
#include "trainer/checkpoint/names.h"
#include "trainer/run_folders.h"

namespace trainer {

RunProfile::RunProfile(const Options& options, Backend& device, const launcher::RankInfo& rank)
    : options_(options), device_(device) {
  const bool is_profiled = !options.profile.empty() && rank.rank == 0;
  const bool is_studied = !options.variability_dir.empty() && options.dry_run.empty();
  if (!is_profiled && !is_studied) return;
  recorder_ = std::make_unique<OpRecorder>([&device] { return device.MakeEvent(); });
  measured_ = MakeMeasuredBackend(device, *recorder_);
  if (is_profiled) {
    profile_.recorder = recorder_.get();
    profile_.backend = device.description();
    return;
  }
  MakeFolder(options.variability_dir, "--variability_dir");
  variability_.recorder = recorder_.get();
  variability_.local_rank = rank.local_rank;
  variability_.host = rank.host.empty() ? HostName() : rank.host;
  if (device.is_host()) {
    variability_.device = "CPU cores";  // of two words, as readers have it
    variability_.read_state = [this] { return host_.Read(); };
    return;
  }
  meter_.emplace("libnvidia-ml.so.1", device.device_id());
  const std::optional<GpuFigures> figures = meter_->Read();
  variability_.device = figures && !figures->model.empty() ? figures->model : "NVIDIA GPU";
  variability_.read_state = [this] { return meter_->State(); };
}

void RunProfile::FindPeaks(Communicator& communicator, const Logger& log) {
  if (options_.profile.empty() || !options_.dry_run.empty()) return;
  if (!options_.roofline.empty()) {
    profile_.peaks = *ParsePeaks(options_.roofline);
    return;
  }
  if (communicator.rank() == 0) {
    log->info("measuring what the machine allows, for --profile (--roofline spares it)");
  }
  communicator.Barrier();
  profile_.peaks = MeasurePeaks(device_);
  profile_.are_peaks_measured = true;
  communicator.Barrier();
}

}  // namespace trainer
