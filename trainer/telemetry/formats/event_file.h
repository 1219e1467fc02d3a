// SPDX-License-Identifier: Apache-2.0
//
// Event files, which TensorBoard draws (TensorFlow, tensorflow/core/util/events_writer.h): each
// event is a record as in TFRecord files (length, masked CRC-32C of it, data, masked CRC-32C of
// them; all little-endian), the first is the version of the format.  A launch has a file of its
// own; TensorBoard joins those of a directory, and drops what earlier ones have told of the steps
// from which a later one begins.
//
// Not thread-safe; rank 0 alone writes one.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "support/descriptor.h"
#include "trainer/options/options.h"
#include "trainer/telemetry/formats/training_log.h"
#include "trainer/telemetry/text/clock.h"

namespace trainer {

extern const LogFormat kEventFile;

struct Scalar {
  std::string_view tag;  // "train/total_loss"; what is in front of the slash is a group of plots
  double value = 0;
};

// The records, framing included.  Pure.
std::string VersionRecord(TimePoint now);
std::string SessionRecord(TimePoint now, std::int64_t first_step);
std::string ScalarsRecord(TimePoint now, std::int64_t step, std::span<const Scalar> scalars);

class EventFile : public TrainingLog {
 public:
  // Makes a new file in `directory`, events.out.tfevents.SECONDS.HOST.PID.  A record that cannot be
  // written is left out as a whole; `log` is told when the one before was written.
  // Throws Error(EX_OSERR) that names the file, and says to give `instead`, if it cannot be made.
  EventFile(const std::filesystem::path& directory, const std::string& host,
            std::string_view instead, Logger log, WallClock clock = SystemClock());
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

  void StartTraining(const TrainingSummary& summary) override;
  // Those that are displayed.
  void Step(const StepMetrics& metrics) override;
  void RolledBack(const RollbackSummary& summary) override;
  void EndEvaluation(const EvaluationMetrics& metrics) override;
  void LogDroppedOutputs() const override {
    trainer::LogDroppedOutputs(log_, path_.string(), lost_events_, "event");
  }

 private:
  void Scalars(std::int64_t step, std::span<const Scalar> scalars);
  void Append(const std::string& record);

  const Logger log_;
  const std::function<void(int)> on_loss_;
  WallClock clock_;
  const std::filesystem::path path_;
  const support::Descriptor file_;
  bool is_torn_ = false;  // the file ends within a record: nothing can follow
  bool is_losing_ = false;
  std::int64_t lost_events_ = 0;
};

}  // namespace trainer
