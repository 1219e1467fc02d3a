// SPDX-License-Identifier: Apache-2.0
//
// The ops of some training steps of this rank, each beside what the machine allows
// (telemetry/meters/op_profile.h): in two files, and as lines for standard output.  What cannot be
// written is told to the log, and the training goes on.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/backend/op_recorder.h"
#include "trainer/core/profiled_op.h"
#include "trainer/model/network.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/config.h"
#include "trainer/train/step/step_result.h"

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

}  // namespace trainer
