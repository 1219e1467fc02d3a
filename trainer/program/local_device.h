// SPDX-License-Identifier: Apache-2.0
//
// What a rank computes with, in words, with its clocks, temperature and power of now.  An
// LocalDevice is used from one thread.

#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "trainer/backend/backend.h"
#include "trainer/telemetry/meters/device_state.h"
#include "trainer/telemetry/meters/gpu_meter.h"

namespace trainer {

class LocalDevice {
 public:
  // Of `device`, which is asked for its name here and no more.  `nvml`: as for dlopen, which the
  // first State or Describe calls.  Throws as Backend::device_id does.
  explicit LocalDevice(const Backend& device, std::string nvml = "libnvidia-ml.so.1");

  // "NVIDIA H200 at 0000:1b:00.0: 1980 MHz, memory 3201 MHz, 61 C, 412 of 700 W", or of processor
  // cores "CPU: 2450 MHz, 48 C": what can be had of that.
  std::string Describe();
  // The same as numbers.
  DeviceState State();

 private:
  const bool is_host_;
  const std::string id_;
  const std::string nvml_;
  std::optional<GpuMeter> meter_;
  HostState host_;
};

// The state of the device of now and then, at no cost to who asks for it: a thread reads it.
class DeviceStatePoller {
 public:
  static constexpr std::chrono::seconds kInterval{5};

  // `device` as LocalDevice has it.
  explicit DeviceStatePoller(const Backend& device, std::string nvml = "libnvidia-ml.so.1");

  // What was read last.  From one thread.
  DeviceState Last();

 private:
  LocalDevice device_;  // the thread's alone
  DeviceState last_;
  StateSampler sampler_;  // last: its thread uses device_
};

}  // namespace trainer
