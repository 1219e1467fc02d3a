// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/local_device.h"

#include <utility>

namespace trainer {

LocalDevice::LocalDevice(const Backend& device, std::string nvml)
    : is_host_(device.is_host()), id_(device.device_id()), nvml_(std::move(nvml)) {}

std::string LocalDevice::Describe() {
  const std::string words = InWords(State());
  std::string name = "CPU";
  if (!is_host_) {
    const std::optional<GpuStats> figures = meter_->Read();
    name = (figures && !figures->model.empty() ? figures->model : "GPU") + " at " + id_;
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

}  // namespace trainer
