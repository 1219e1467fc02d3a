// SPDX-License-Identifier: Apache-2.0
//
// The ops of some training steps of this rank, each beside what the machine allows
// (telemetry/meters/op_profile.h): in two files, and as lines for standard output.  What cannot be
// written is told to the log, and the training goes on.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/descriptor.h"
#include "trainer/backend/op_recorder.h"
#include "trainer/comm/communicator.h"
#include "trainer/core/profiled_op.h"
#include "trainer/model/network.h"
#include "trainer/telemetry/meters/device_state.h"
#include "trainer/telemetry/meters/kernel_trace.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/config.h"
#include "trainer/train/step/metrics.h"

namespace trainer {

// Torchvision's names: "layer1.0.conv1".
void NameLayers(const Network& network, OpRecorder& recorder);

// What main provides for a profile.
struct StepProfileDeps {
  OpRecorder* recorder = nullptr;  // of the back end of the run (backend/measured_backend.h)
  std::string backend;             // its description
  MachinePeaks peaks;
  bool are_peaks_measured = false;  // else given
};

class StepProfile : public StepObserver {
 public:
  // All outlive it.  The ops get the names of the network's layers.  `deps` may be null: then
  // nothing is done.
  StepProfile(const TrainConfig& config, const StepProfileDeps* deps, const Network& network,
              Logger log);

  // Warns where no step is to be profiled.
  void Start(std::int64_t first, std::int64_t end) override;
  void Before(std::int64_t step) override;
  void After(const StepResult& record) override;
  void LeaveOut() override;
  // What is profiled has to be steps in a row: it starts anew where steps that are to be profiled
  // are made again.
  void RolledBack() override;
  // Shows the steps that were profiled, even where the training went back behind them and ended
  // before it made them again.
  void End() override;

  // For standard output; none unless steps were profiled.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  void Show();
  void Write(const std::string& name, const std::string& text);

  const TrainConfig& config_;
  const StepProfileDeps* const deps_;
  const Logger log_;
  std::int64_t first_ = 0;  // that was profiled, from 1
  std::int64_t steps_ = 0;
  double seconds_ = 0;  // of all of them
  bool is_done_;
  std::vector<std::string> lines_;
};

// The files of the SC22 study of variability among GPUs, of every rank, in one directory:
//   resnet_iterdur_SECONDS_HOST.txt   how long each iteration took, of all ranks of a node
//                                     (telemetry/formats/variability_files.h)
//   resnet_PID_SECONDS_HOST.csv       each kernel or op of a rank, and clocks, temperature and
//                                     power of what it computes with
//                                     (telemetry/formats/variability_files.h)
// SECONDS since 1970 are those at which the training began, on rank 0.
//
// What a full disk loses is told to the log, and the training goes on.

// What main provides for it.
struct VariabilityLogDeps {
  KernelTrace* kernels = nullptr;  // of the GPU; null: ops stand in the place of kernels
  OpRecorder* recorder = nullptr;  // of the back end of the run (backend/measured_backend.h), else
  std::string why_ops;             // why a GPU's kernels are not traced
  std::string device;              // its name, such as "NVIDIA H200"
  int local_rank = 0;
  std::string host;
  ReadDeviceState read_state;  // called from a thread of its own
};

class VariabilityLog : public StepObserver {
 public:
  static constexpr std::chrono::milliseconds kInterval{50};  // between readings of the device

  // All outlive it.  `deps` may be null: then nothing is done.
  VariabilityLog(const TrainConfig& config, Communicator& communicator,
                 const VariabilityLogDeps* deps, const Network& network, Logger log);
  VariabilityLog(const VariabilityLog&) = delete;
  VariabilityLog& operator=(const VariabilityLog&) = delete;

  // Collective.  Throws Error(EX_OSERR) that names a file which cannot be written, and the option.
  void Start(std::int64_t first, std::int64_t end) override;
  void After(const StepResult& record) override;
  void LeaveOut() override;
  void RolledBack() override { LeaveOut(); }
  // Collective.
  void End() override;

 private:
  support::Descriptor Open(const std::filesystem::path& path) const;
  void Append(const support::Descriptor& file, const std::string& text, bool is_own);
  void AppendKernels(const std::vector<TracedKernel>& kernels);
  void AppendStates();

  const TrainConfig& config_;
  Communicator& communicator_;
  const VariabilityLogDeps* const deps_;
  const Logger log_;
  const std::string device_;  // as nvprof names it: with the local rank
  support::Descriptor durations_;
  support::Descriptor kernels_;
  std::int64_t rows_ = 0;  // of kernels or ops
  bool is_losing_ = false;
  std::chrono::steady_clock::time_point began_;
  std::optional<StateSampler> sampler_;
};

}  // namespace trainer
