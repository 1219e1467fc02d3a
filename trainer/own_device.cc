// SPDX-License-Identifier: Apache-2.0

#include "trainer/own_device.h"

#include <utility>

namespace trainer {

OwnDevice::OwnDevice(const Backend& device, std::string nvml)
    : device_(device), nvml_(std::move(nvml)) {}

std::string OwnDevice::Describe() {
  const std::string words = InWords(State());
  std::string name = "CPU";
  if (!device_.is_host()) {
    const std::optional<GpuFigures> figures = meter_->Read();
    name = (figures && !figures->model.empty() ? figures->model : "GPU") + " at " +
           device_.device_id();
  }
  return words.empty() ? name : name + ": " + words;
}

DeviceState OwnDevice::State() {
  if (device_.is_host()) return host_.Read();
  if (!meter_) meter_.emplace(nvml_, device_.device_id());
  return meter_->State();
}

DeviceWatch::DeviceWatch(const Backend& device, std::string nvml)
    : device_(device, std::move(nvml)), sampler_([this] { return device_.State(); }, kInterval) {}

DeviceState DeviceWatch::Last() {
  for (const TimedState& read : sampler_.Take()) last_ = read.state;
  return last_;
}

}  // namespace trainer
