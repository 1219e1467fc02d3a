// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/step_trace.h"

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/number.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/comm/communicator.h"
#include "trainer/telemetry/formats/trace_file.h"

namespace trainer {
namespace {

// Those of `rank`, on every rank.
std::vector<Span> SpansOf(int rank, const std::vector<Span>& own, Communicator& communicator) {
  std::uint64_t count = own.size();
  communicator.Broadcast(&count, sizeof(count), rank);
  std::vector<Span> spans = communicator.rank() == rank ? own : std::vector<Span>(count);
  if (count > 0) communicator.Broadcast(spans.data(), count * sizeof(Span), rank);
  return spans;
}

// From the last on.
constexpr std::pair<StepPhase, SpanKind> kPhases[] = {
    {StepPhase::kUpdate, SpanKind::kUpdate},
    {StepPhase::kExposedAllReduce, SpanKind::kExposedAllReduce},
    {StepPhase::kBackward, SpanKind::kBackward},
    {StepPhase::kForward, SpanKind::kForward},
    {StepPhase::kInputWait, SpanKind::kInputWait}};

void AddPhases(SpanRecorder& recorder, std::int64_t step, SpanRecorder::Clock::time_point end,
               const StepTimes& times, std::span<const std::pair<StepPhase, SpanKind>> phases) {
  using Duration = SpanRecorder::Clock::duration;
  for (const auto& [phase, kind] : phases) {
    const auto from =
        end - std::chrono::duration_cast<Duration>(std::chrono::duration<double>(times[phase]));
    recorder.Add(kind, 0, step, from, end);
    end = from;
  }
}

}  // namespace

StepTrace::StepTrace(const TrainConfig& config, Communicator& communicator, SpanRecorder* recorder,
                     Logger log)
    : config_(config),
      communicator_(communicator),
      recorder_(recorder),
      log_(std::move(log)),
      is_done_(recorder == nullptr) {}

void StepTrace::Start(std::int64_t first, std::int64_t end) {
  const StepWindow& window = config_.trace;
  if (is_done_ || communicator_.rank() != 0) return;
  if (window.last() <= first || window.first > end) {
    log_->warn(
        "--trace writes nothing: steps {} to {} are not among the steps {} to {} of this "
        "launch",
        window.first, window.last(), first + 1, end);
  }
}

void StepTrace::Before(std::int64_t step) {
  const std::int64_t number = step + 1;
  const bool is_traced = number >= config_.trace.first && number <= config_.trace.last();
  if (is_done_ || recorder_->is_on() || !is_traced) return;
  communicator_.Barrier();
  recorder_->Start();
}

void StepTrace::After(const StepResult& record) {
  if (record.step + 1 >= config_.trace.last()) End();
}

void StepTrace::RolledBack() {
  if (is_done_ || !recorder_->is_on()) return;
  if (communicator_.rank() == 0) {
    log_->warn("--trace ends here: training was rolled back to a checkpoint");
  }
  End();
}

void StepTrace::End() {
  if (is_done_ || !recorder_->is_on()) return;
  recorder_->Stop();
  is_done_ = true;
  Gather();
}

void StepTrace::Gather() {
  const std::vector<std::string> hosts = GatherTexts(communicator_, HostName());
  const std::vector<Span> own = recorder_->Spans();
  std::optional<TraceFile> file;
  if (communicator_.rank() == 0) file.emplace(TracePath(config_));
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const std::vector<Span> spans = SpansOf(rank, own, communicator_);
    if (file) file->Add(rank, hosts[static_cast<std::size_t>(rank)], spans);
  }
  if (recorder_->dropped() > 0) {
    log_->warn("{} of this rank did not fit into the memory for --trace and are left out",
               support::Counted(recorder_->dropped(), "span"));
  }
  if (!file) return;
  const std::string path = TracePath(config_).string();
  if (const int error = file->Finish(); error != 0) {
    log_->warn("{}: cannot be written: {}; the run continues without it", path,
               std::generic_category().message(error));
  } else {
    log_->info("trace written: {}", path);
  }
}

void AddStepSpans(SpanRecorder& recorder, std::int64_t step, SpanRecorder::Clock::time_point begin,
                  SpanRecorder::Clock::time_point end, const StepTimes& times) {
  recorder.Add(SpanKind::kStep, 0, step, begin, end);
  AddPhases(recorder, step, end, times, kPhases);
}

void AddBatchSpans(SpanRecorder& recorder, std::int64_t step, SpanRecorder::Clock::time_point end,
                   const StepTimes& times) {
  AddPhases(recorder, step, end, times, std::span(kPhases).subspan<2>());
}

}  // namespace trainer
