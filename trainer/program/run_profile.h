// SPDX-License-Identifier: Apache-2.0
//
// The device of a rank, with its clocks, temperature and power, and what --profile and
// --variability_dir need around a run: the back end that times its ops, the limits of the machine.

#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "launcher/protocol/rank_environment.h"
#include "trainer/backend/backend.h"
#include "trainer/backend/op_recorder.h"
#include "trainer/comm/communicator.h"
#include "trainer/options/options.h"
#include "trainer/telemetry/meters/device_state.h"
#include "trainer/telemetry/meters/kernel_trace.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/logging/step_profile.h"

namespace trainer {

// The device of a rank.  A LocalDevice is used from one thread.
class LocalDevice {
 public:
  // Of `device`, which is asked for its name here and no more.  `nvml`: as for dlopen, which the
  // first State or Describe calls.  Throws as Backend::device_id does.
  explicit LocalDevice(const Backend& device, std::string nvml = "libnvidia-ml.so.1");

  // "NVIDIA H200 at 0000:1b:00.0: 1980 MHz, memory 3201 MHz, 61 C, 412 of 700 W", or of processor
  // cores "CPU: 2450 MHz, 48 C": what can be had of that.
  std::string Describe();
  // The same with what tells it from all others: "NVIDIA H200 at 0000:1b:00.0, serial number
  // 1654223001234, GPU-8932f937-d72c-4106-c12f-20bd9faed9f6: 1980 MHz, ...".
  std::string Identify();
  // The same as numbers.
  DeviceState State();

 private:
  std::string Describe(bool is_identified);

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

class RunProfile {
 public:
  // `options` and `device` outlive it.  Throws Error(EX_OSERR) if --variability_dir cannot be made.
  RunProfile(const Options& options, Backend& device, const launcher::RankInfo& rank);

  // What the run is to compute with: `device`, or one around it that times its ops.
  Backend& backend() { return measured_ ? *measured_ : device_; }

  LocalDevice& device() { return own_device_; }

  // Collective: the ranks of a node measure at once, as they will compute.  Does nothing where
  // nothing is to be measured.
  void FindPeaks(Communicator& communicator, const Logger& log);

  // Null where there is none: of a profile on all ranks but 0.
  const StepProfileDeps* profile() const { return profile_.recorder ? &profile_ : nullptr; }
  const VariabilityLogDeps* variability() const { return is_studied_ ? &variability_ : nullptr; }

 private:
  OpRecorder* MeasureOps();
  void Study(const launcher::RankInfo& rank);

  const Options& options_;
  Backend& device_;
  std::unique_ptr<OpRecorder> recorder_;
  std::unique_ptr<Backend> measured_;
  std::optional<KernelTrace> kernels_;
  std::optional<GpuMeter> meter_;
  HostState host_;
  LocalDevice own_device_;
  StepProfileDeps profile_;
  VariabilityLogDeps variability_;
  bool is_studied_ = false;
};

}  // namespace trainer
