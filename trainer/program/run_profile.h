// SPDX-License-Identifier: Apache-2.0
//
// What --profile and --variability_dir need around a run: the back end that times its ops, the
// limits of the machine, and what tells its clocks and power.

#pragma once

#include <memory>
#include <optional>

#include "launcher/protocol/rank_environment.h"
#include "trainer/backend/backend.h"
#include "trainer/backend/op_recorder.h"
#include "trainer/comm/communicator.h"
#include "trainer/options/options.h"
#include "trainer/program/local_device.h"
#include "trainer/telemetry/meters/device_state.h"
#include "trainer/telemetry/meters/gpu_meter.h"
#include "trainer/telemetry/meters/kernel_trace.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/logging/step_profile.h"
#include "trainer/train/logging/variability_log.h"

namespace trainer {

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
