// SPDX-License-Identifier: Apache-2.0
//
// Some steps of all ranks on one time line, in a file for Chrome and Perfetto
// (telemetry/formats/trace_file.h): phases, all-reduces in host memory, and the images that input
// threads make.  Every rank's time is 0 when it leaves a barrier in front of the first of these
// steps, so clocks need not agree.
//
// Collective: all ranks make the same calls at the same steps.  What cannot be written is told to
// the log, and the training goes on.

#pragma once

#include <cstdint>

#include "trainer/comm/communicator.h"
#include "trainer/core/span_recorder.h"
#include "trainer/telemetry/meters/step_timer.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/config.h"
#include "trainer/train/step/metrics.h"

namespace trainer {

class StepTrace : public StepObserver {
 public:
  // All outlive it.  `recorder` may be null: then nothing is done.
  StepTrace(const TrainConfig& config, Communicator& communicator, SpanRecorder* recorder,
            Logger log);

  // Warns, on rank 0, where no step is to be traced.
  void Start(std::int64_t first, std::int64_t end) override;
  void Before(std::int64_t step) override;
  void After(const StepResult& record) override;
  // A trace that has begun ends with what is there, for the steps that follow have the numbers of
  // others.
  void RolledBack() override;
  void End() override;

 private:
  void Gather();

  const TrainConfig& config_;
  Communicator& communicator_;
  SpanRecorder* const recorder_;
  const Logger log_;
  bool is_done_ = false;
};

// A step of this rank and its phases, which end with it, one behind the other.
void AddStepSpans(SpanRecorder& recorder, std::int64_t step, SpanRecorder::Clock::time_point begin,
                  SpanRecorder::Clock::time_point end, const StepTimes& times);
// The phases of a batch of a step that is not its last: all but all-reduce and update.
void AddBatchSpans(SpanRecorder& recorder, std::int64_t step, SpanRecorder::Clock::time_point end,
                   const StepTimes& times);

}  // namespace trainer
