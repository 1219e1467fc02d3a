// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/logging/step_profile.h"

#include <system_error>
#include <utility>

#include "support/file.h"
#include "trainer/telemetry/meters/op_profile.h"

namespace trainer {

void NameLayers(const Network& network, OpRecorder& recorder) {
  for (const Parameter& parameter : network.parameters()) {
    // "layer1.0.conv1" of "layer1.0.conv1.weight".
    const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
    const ParameterBinding binding = network.BindingOf(parameter);
    for (const Tensor& tensor : {binding.value, binding.gradient}) {
      if (tensor) recorder.NameLayer(tensor.data, layer);
    }
  }
}

namespace {

constexpr std::size_t kShownRows = 30;

}  // namespace

StepProfile::StepProfile(const TrainConfig& config, const StepProfileDeps* deps,
                         const Network& network, Logger log)
    : config_(config), deps_(deps), log_(std::move(log)), is_done_(deps == nullptr) {
  if (!is_done_) NameLayers(network, *deps_->recorder);
}

void StepProfile::Start(std::int64_t first, std::int64_t end) {
  const StepWindow& window = config_.profile;
  if (is_done_ || (window.last() > first && window.first <= end)) return;
  log_->warn(
      "--profile shows nothing: steps {} to {} are not among the steps {} to {} of this launch",
      window.first, window.last(), first + 1, end);
}

void StepProfile::Before(std::int64_t step) {
  const std::int64_t number = step + 1;
  if (is_done_ || deps_->recorder->is_on()) return;
  if (number < config_.profile.first || number > config_.profile.last()) return;
  first_ = number;
  steps_ = 0;
  seconds_ = 0;
  deps_->recorder->Start();
}

void StepProfile::After(const StepResult& record) {
  if (is_done_ || !deps_->recorder->is_on()) return;
  deps_->recorder->Collect();
  ++steps_;
  seconds_ += record.times.step;
  if (record.step + 1 >= config_.profile.last()) End();
}

void StepProfile::LeaveOut() {
  if (!is_done_ && deps_->recorder->is_on()) deps_->recorder->Drop();
}

void StepProfile::RolledBack() {
  if (!is_done_) deps_->recorder->Stop();
}

void StepProfile::End() {
  if (is_done_) return;
  is_done_ = true;
  deps_->recorder->Stop();
  if (steps_ > 0) Show();
}

void StepProfile::Show() {
  ProfileHead head;
  head.backend = deps_->backend;
  head.first_step = first_;
  head.steps = steps_;
  head.step_seconds = seconds_ / static_cast<double>(steps_);
  head.peaks = deps_->peaks;
  head.are_peaks_measured = deps_->are_peaks_measured;
  const OpProfile profile = AnalyzeOps(std::move(head), deps_->recorder->Ops());
  lines_ = ProfileLines(profile, kShownRows);
  Write("profile.csv", ProfileCsv(profile));
  Write("profile.json", ProfileJson(profile));
}

void StepProfile::Write(const std::string& name, const std::string& text) {
  const std::string path = (config_.results_dir / name).string();
  if (const int error = support::ReplaceFile(path, text); error != 0) {
    log_->warn("{}: cannot be written: {}; the run continues without it", path,
               std::generic_category().message(error));
  } else {
    log_->info("profile written: {}", path);
  }
}

}  // namespace trainer
