// SPDX-License-Identifier: Apache-2.0
//
// What one rank does now, in a text file for Prometheus: the textfile collector of its node
// exporter reads such files.  The text is of two formats at once, Prometheus's own (0.0.4) and
// OpenMetrics 1.0, so that units can be told:
//   # HELP ddltraind_step_seconds Mean time of a step since the last writing.
//   # TYPE ddltraind_step_seconds gauge
//   # UNIT ddltraind_step_seconds seconds
//   ddltraind_step_seconds{rank="3",host="gpu025",run="/scratch/run"} 0.25
//   ...
//   # EOF
// All metrics are gauges, for the formats want counters in different words.
// doc/reference/metrics.md defines them.
//
// A step adds a few numbers up; the file is written after the first one, then no more often than
// every kSecondsBetweenWrites, and at the end.  Not thread-safe.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "trainer/options/options.h"
#include "trainer/telemetry/formats/training_log.h"
#include "trainer/telemetry/meters/step_timer.h"
#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {

extern const LogFormat kPrometheusFile;

// Whose metrics they are.
struct MetricsOwner {
  int rank = 0;
  std::string host;
  std::string version;  // of the program
  // Tells the runs of a node apart; the file's name has a checksum of it.
  std::string run = {};
};

class PrometheusFile : public TrainingLog {
 public:
  static constexpr double kSecondsBetweenWrites = 5;

  // FOLDER/ddltraind-rank-00003-1f3a90c2.prom.  `on_loss`: ReplacedFile.
  PrometheusFile(const std::filesystem::path& directory, MetricsOwner owner,
                 std::function<void(int error)> on_loss, WallClock clock = SystemClock());
  ~PrometheusFile() override { End(); }

  const std::filesystem::path& path() const { return file_.path(); }

  // The first writing.  Returns 0, or errno of what it failed for, which nobody else is told.
  int Start();
  void StartTraining(const TrainingSummary& summary) override;
  void Step(const StepMetrics& metrics) override;
  void RolledBack(const RollbackSummary& summary) override;
  void EndEvaluation(const EvaluationMetrics& metrics) override;
  // That the program runs no more.
  void End();

 private:
  struct Metric {
    const char* name;
    const char* unit;  // "" for a plain number
    const char* help;
  };
  void Write();
  const std::string& Text();
  void Head(const Metric& metric);
  void Value(const Metric& metric, double value);
  void Sample(const char* name, const std::string& more_labels, double value);
  void TrainingText();
  void StepText();
  void EvaluationText();

  const MetricsOwner owner_;
  const std::string labels_;  // rank="3",host="gpu025",run="/scratch/run"
  ReplacedFile file_;
  WallClock clock_;
  TimePoint written_;
  std::string text_;

  bool is_running_ = true;
  std::int64_t planned_steps_ = 0;
  std::int64_t global_batch_ = 0;
  std::int64_t skipped_steps_ = 0;  // of this process
  std::int64_t rollbacks_ = 0;      // of this process
  StepMetrics last_;
  TimePoint last_time_;
  bool has_step_ = false;
  std::int64_t new_steps_ = 0;  // since the last writing
  StepTimes new_times_;         // sums over them
  StepTimes mean_times_;        // over those of the writing before, while there are no new ones
  std::optional<EvaluationMetrics> evaluation_;
};

}  // namespace trainer
