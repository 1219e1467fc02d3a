// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/logging/step_profile.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "support/append_file.h"
#include "support/file.h"
#include "trainer/core/error.h"
#include "trainer/telemetry/formats/variability_files.h"
#include "trainer/telemetry/meters/op_profile.h"
#include "trainer/telemetry/text/log.h"

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

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

VariabilityLog::VariabilityLog(const TrainConfig& config, Communicator& communicator,
                               const VariabilityLogDeps* deps, const Network& network, Logger log)
    : config_(config),
      communicator_(communicator),
      deps_(deps),
      log_(std::move(log)),
      device_(deps == nullptr ? "" : fmt::format("{} ({})", deps->device, deps->local_rank)) {
  if (deps_ != nullptr && deps_->recorder != nullptr) NameLayers(network, *deps_->recorder);
}

support::Descriptor VariabilityLog::Open(const std::filesystem::path& path) const {
  support::Descriptor file(support::OpenToAppend(path.c_str(), 0666, support::OwnLinks::kFollow));
  if (!file.is_open()) RejectFile(path, errno, "another --variability_dir");
  return file;
}

void VariabilityLog::Start(std::int64_t /*first*/, std::int64_t /*end*/) {
  if (deps_ == nullptr) return;
  std::int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count();
  communicator_.Broadcast(&seconds, sizeof seconds, 0);
  const std::filesystem::path& directory = config_.variability_dir;
  const std::string run = fmt::format("{}_{}", seconds, deps_->host);
  durations_ = Open(directory / fmt::format("resnet_iterdur_{}.txt", run));
  kernels_ = Open(directory / fmt::format("resnet_{}_{}.csv", ::getpid(), run));
  Append(durations_, DurationsHead(communicator_.rank(), communicator_.size(), deps_->local_rank),
         false);
  Append(kernels_,
         NvprofHead(::getpid(), "ddltraind " + config_.program_version + " in the form of nvprof"),
         true);
  began_ = Clock::now();
  sampler_.emplace(deps_->read_state, kInterval);
  if (!deps_->why_ops.empty()) {
    log_->warn("{}: rows are ops, not kernels: {}", directory.string(), deps_->why_ops);
  }
  if (deps_->kernels != nullptr) {
    deps_->kernels->Start();
  } else {
    deps_->recorder->Start();
  }
}

void VariabilityLog::LeaveOut() {
  if (deps_ == nullptr) return;
  if (deps_->kernels != nullptr) {
    deps_->kernels->Take();
  } else {
    deps_->recorder->Drop();
  }
}

void VariabilityLog::After(const StepResult& record) {
  if (deps_ == nullptr) return;
  const StepTimes& times = record.times;
  const double seconds = times[StepPhase::kForward] + times[StepPhase::kBackward] +
                         times[StepPhase::kExposedAllReduce];
  Append(durations_, IterationDuration(record.launch_step, deps_->local_rank, seconds), false);
  if (deps_->kernels != nullptr) {
    AppendKernels(deps_->kernels->Take());
  } else {
    std::string rows;
    deps_->recorder->Collect([&](const RecordedOp& call) {
      rows += NvprofKernel(device_, call.begin, call.seconds,
                           call.op.op + " (" + call.op.layer + ")", ++rows_);
    });
    Append(kernels_, rows, true);
  }
  AppendStates();
}

void VariabilityLog::AppendKernels(const std::vector<TracedKernel>& kernels) {
  std::string rows;
  for (const TracedKernel& kernel : kernels) {
    rows += NvprofKernel(device_, kernel.begin, kernel.seconds, kernel.name, ++rows_);
  }
  Append(kernels_, rows, true);
}

void VariabilityLog::AppendStates() {
  std::string rows;
  for (const TimedState& timed : sampler_->Take()) {
    rows += NvprofState(device_, timed.seconds, timed.state);
  }
  Append(kernels_, rows, true);
}

void VariabilityLog::End() {
  if (deps_ == nullptr) return;
  const double seconds = SecondsSince(began_);
  if (deps_->kernels != nullptr) {
    AppendKernels(deps_->kernels->Stop());
    if (const std::int64_t lost = deps_->kernels->lost(); lost > 0) {
      log_->warn("{}: {} kernels are lost: CUPTI had no memory for them",
                 config_.variability_dir.string(), lost);
    }
  } else {
    deps_->recorder->Stop();
  }
  AppendStates();
  sampler_.reset();
  // Readers stop at this line, so the others' are to be there before it.
  communicator_.Barrier();
  if (deps_->local_rank == 0) Append(durations_, TrainingTime(seconds), false);
}

void VariabilityLog::Append(const support::Descriptor& file, const std::string& text, bool is_own) {
  if (text.empty()) return;
  const int error = AppendWhole(file.fd(), text, is_own).error;
  if (error != 0 && !is_losing_) {
    log_->warn("{}: lines are lost: {}; the run continues", config_.variability_dir.string(),
               std::generic_category().message(error));
  }
  is_losing_ = error != 0;
}

}  // namespace trainer
