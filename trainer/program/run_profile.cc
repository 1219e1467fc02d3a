// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/run_profile.h"

#include <utility>
#include <vector>

#include "trainer/backend/measured_backend.h"
#include "trainer/backend/op_work.h"
#include "trainer/outputs/run_outputs.h"

namespace trainer {

LocalDevice::LocalDevice(const Backend& device, std::string nvml)
    : is_host_(device.is_host()), id_(device.device_id()), nvml_(std::move(nvml)) {}

std::string LocalDevice::Describe() { return Describe(/*is_identified=*/false); }

std::string LocalDevice::Identify() { return Describe(/*is_identified=*/true); }

std::string LocalDevice::Describe(bool is_identified) {
  const std::string words = InWords(State());
  std::string name = "CPU";
  if (!is_host_) {
    const std::optional<GpuStats> figures = meter_->Read();
    name = (figures && !figures->model.empty() ? figures->model : "GPU") + " at " + id_;
    if (is_identified && figures) {
      if (!figures->serial.empty()) name += ", serial number " + figures->serial;
      if (!figures->uuid.empty()) name += ", " + figures->uuid;
    }
  }
  return words.empty() ? name : name + ": " + words;
}

DeviceState LocalDevice::State() {
  if (is_host_) return host_.Read();
  if (!meter_) meter_.emplace(nvml_, id_);
  return meter_->State();
}

DeviceStatePoller::DeviceStatePoller(const Backend& device, std::string nvml)
    : device_(device, std::move(nvml)), sampler_([this] { return device_.State(); }, kInterval) {}

DeviceState DeviceStatePoller::Last() {
  for (const TimedState& read : sampler_.Take()) last_ = read.state;
  return last_;
}

RunProfile::RunProfile(const Options& options, Backend& device, const launcher::RankInfo& rank)
    : options_(options), device_(device), own_device_(device) {
  if (options.profile.count > 0 && rank.rank == 0) {
    profile_.recorder = MeasureOps();
    profile_.backend = device.description();
  }
  if (!options.variability_dir.empty() && options.dry_run.empty()) Study(rank);
}

OpRecorder* RunProfile::MeasureOps() {
  recorder_ = std::make_unique<OpRecorder>([this] { return device_.MakeEvent(); });
  measured_ = MakeMeasuredBackend(device_, *recorder_);
  return recorder_.get();
}

void RunProfile::Study(const launcher::RankInfo& rank) {
  MakeDirectory(options_.variability_dir, "--variability_dir");
  is_studied_ = true;
  variability_.local_rank = rank.local_rank;
  variability_.host = HostOf(rank);
  if (device_.is_host()) {
    variability_.recorder = MeasureOps();
    variability_.device = "CPU cores";  // of two words, as readers have it
    variability_.read_state = [this] { return host_.Read(); };
    return;
  }
  kernels_.emplace(std::vector<std::string>{DDLRUN_CUPTI_LIBRARIES});
  variability_.why_ops = kernels_->problem();
  if (variability_.why_ops.empty()) {
    variability_.kernels = &*kernels_;
  } else {
    variability_.recorder = MeasureOps();
  }
  meter_.emplace("libnvidia-ml.so.1", device_.device_id());
  const std::optional<GpuStats> figures = meter_->Read();
  variability_.device = figures && !figures->model.empty() ? figures->model : "NVIDIA GPU";
  variability_.read_state = [this] { return meter_->State(); };
}

void RunProfile::FindPeaks(Communicator& communicator, const Logger& log) {
  if (options_.profile.count == 0 || !options_.dry_run.empty()) return;
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
