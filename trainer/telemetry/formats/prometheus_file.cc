// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/prometheus_file.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <span>
#include <system_error>
#include <utility>

#include "support/file.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/file.h"
#include "trainer/options/option_access.h"

namespace trainer {
namespace {

// As both formats escape the value of a label.
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    if (letter == '\\' || letter == '"') escaped += '\\';
    if (letter == '\n') {
      escaped += "\\n";
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Inf" : "+Inf";
  return fmt::format("{}", value);
}

// "input wait" as a label.
std::string PhaseLabel(StepPhase phase) {
  std::string name(NameOf(phase));
  for (char& letter : name) {
    if (letter == ' ' || letter == '-') letter = '_';
  }
  return ",phase=\"" + name + "\"";
}

// ddltraind-rank-00003-1f3a90c2.prom
std::string FileName(const MetricsOwner& owner) {
  const std::uint32_t run = Crc32c(std::as_bytes(std::span(owner.run)));
  return fmt::format("ddltraind-rank-{:05}{}.prom", owner.rank,
                     owner.run.empty() ? "" : fmt::format("-{:08x}", run));
}

}  // namespace

PrometheusFile::PrometheusFile(const std::filesystem::path& directory, MetricsOwner owner,
                               std::function<void(int error)> on_loss, WallClock clock)
    : owner_(std::move(owner)),
      labels_(fmt::format("rank=\"{}\",host=\"{}\"", owner_.rank, Escaped(owner_.host)) +
              (owner_.run.empty() ? "" : fmt::format(",run=\"{}\"", Escaped(owner_.run)))),
      file_(directory / FileName(owner_), std::move(on_loss)),
      clock_(std::move(clock)) {}

int PrometheusFile::Start() { return support::ReplaceFile(file_.path(), Text()); }

void PrometheusFile::Write() { file_.Write(Text()); }

void PrometheusFile::StartTraining(const TrainingSummary& summary) {
  planned_steps_ = summary.total_steps;
  global_batch_ = summary.global_batch;
}

void PrometheusFile::RolledBack(const RollbackSummary& summary) {
  planned_steps_ = summary.total_steps;
  ++rollbacks_;
}

void PrometheusFile::Step(const StepMetrics& metrics) {
  const bool is_first = !std::exchange(has_step_, true);
  last_ = metrics;
  last_time_ = clock_();
  if (metrics.skipped) ++skipped_steps_;
  ++new_steps_;
  new_times_.step += metrics.times.step;
  for (std::size_t phase = 0; phase < kStepPhases; ++phase) {
    new_times_.phases[phase] += metrics.times.phases[phase];
  }
  // A clock that was set back is no reason to wait.
  const double since = InSeconds(last_time_ - written_);
  if (!is_first && since >= 0 && since < kSecondsBetweenWrites) return;
  Write();
}

void PrometheusFile::EndEvaluation(const EvaluationMetrics& metrics) {
  evaluation_ = metrics;
  Write();
}

void PrometheusFile::End() {
  is_running_ = false;
  Write();
}

const std::string& PrometheusFile::Text() {
  written_ = clock_();
  if (new_steps_ > 0) {
    const auto steps = static_cast<double>(std::exchange(new_steps_, 0));
    mean_times_.step = new_times_.step / steps;
    for (std::size_t phase = 0; phase < kStepPhases; ++phase) {
      mean_times_.phases[phase] = new_times_.phases[phase] / steps;
    }
    new_times_ = {};
  }
  text_.clear();
  Head({"ddltraind_build_info", "", "Version of the program; always 1."});
  Sample("ddltraind_build_info", ",version=\"" + Escaped(owner_.version) + "\"", 1);
  Value({"ddltraind_running", "", "1 while the program runs, 0 after an orderly end."},
        is_running_ ? 1 : 0);
  if (global_batch_ > 0) TrainingText();
  if (has_step_) StepText();
  if (evaluation_) EvaluationText();
  text_ += "# EOF\n";
  return text_;
}

void PrometheusFile::TrainingText() {
  Value({"ddltraind_planned_steps", "", "Steps of the whole training."},
        static_cast<double>(planned_steps_));
  Value({"ddltraind_global_batch_images", "images", "Images of all ranks in a step."},
        static_cast<double>(global_batch_));
}

void PrometheusFile::StepText() {
  Value({"ddltraind_steps", "", "Steps done, those before a resume included."},
        static_cast<double>(last_.steps_done()));
  Value({"ddltraind_finished_epochs", "", "Epochs that are over."},
        static_cast<double>(last_.epochs_done()));
  Value({"ddltraind_skipped_steps", "",
         "Steps of this process that updated nothing, for a gradient overflowed or was NaN."},
        static_cast<double>(skipped_steps_));
  Value(
      {"ddltraind_rollbacks", "",
       "How often this process has rolled back to a checkpoint, for loss, gradient or weights were "
       "NaN."},
      static_cast<double>(rollbacks_));
  Value(
      {"ddltraind_last_step_timestamp_seconds", "seconds", "When the last step ended, since 1970."},
      InSeconds(last_time_.time_since_epoch()));
  Value({"ddltraind_images_per_second", "images_per_second",
         "Images of all ranks per second of steps, since the last writing."},
        static_cast<double>(global_batch_) / mean_times_.step);
  Value({"ddltraind_step_seconds", "seconds", "Mean time of a step since the last writing."},
        mean_times_.step);
  const Metric phases = {"ddltraind_phase_seconds", "seconds",
                         "Mean time of each phase of a step since the last writing."};
  Head(phases);
  for (std::size_t i = 0; i < kStepPhases; ++i) {
    const auto phase = static_cast<StepPhase>(i);
    Sample(phases.name, PhaseLabel(phase), mean_times_[phase]);
  }
  Value({"ddltraind_cross_entropy", "", "Cross-entropy of the last step."}, last_.cross_entropy);
  Value({"ddltraind_l2_loss", "", "L2 loss of the last step."}, last_.l2_loss);
  Value({"ddltraind_top1_ratio", "ratio", "Share of the last step's images that were right."},
        last_.top1);
  Value({"ddltraind_learning_rate", "", "Learning rate of the last step."}, last_.learning_rate);
  Value({"ddltraind_loss_scale", "", "Loss scale of the last step."}, last_.loss_scale);
}

void PrometheusFile::EvaluationText() {
  Value({"ddltraind_evaluation_top1_ratio", "ratio", "Top-1 accuracy of the evaluation."},
        evaluation_->top1);
  Value({"ddltraind_evaluation_top5_ratio", "ratio", "Top-5 accuracy of the evaluation."},
        evaluation_->top5);
  Value({"ddltraind_evaluation_cross_entropy", "", "Cross-entropy of the evaluation."},
        evaluation_->cross_entropy);
  Value({"ddltraind_evaluation_images_per_second", "images_per_second",
         "Images of all ranks per second of the evaluation."},
        evaluation_->images_per_second);
}

void PrometheusFile::Head(const Metric& metric) {
  const auto out = std::back_inserter(text_);
  fmt::format_to(out, "# HELP {} {}\n# TYPE {} gauge\n", metric.name, metric.help, metric.name);
  if (*metric.unit != '\0') fmt::format_to(out, "# UNIT {} {}\n", metric.name, metric.unit);
}

void PrometheusFile::Value(const Metric& metric, double value) {
  Head(metric);
  Sample(metric.name, "", value);
}

void PrometheusFile::Sample(const char* name, const std::string& more_labels, double value) {
  fmt::format_to(std::back_inserter(text_), "{}{{{}{}}} {}\n", name, labels_, more_labels,
                 Number(value));
}

namespace {

// What tells the runs of a node apart.
std::string NameOfRun(const Options& options) {
  std::error_code ignored;
  const std::filesystem::path results = std::filesystem::weakly_canonical(
      std::filesystem::absolute(options.results_dir, ignored), ignored);
  return results.empty() ? options.results_dir.string() : results.string();
}

std::unique_ptr<TrainingLog> OpenPrometheusFile(const LoggedLaunch& launch) {
  const std::string& directory = launch.options.prometheus_dir;
  if (directory.empty()) return nullptr;
  MakeDirectory(directory, "--prometheus_dir");
  const MetricsOwner owner = {launch.rank, launch.host, launch.version, NameOfRun(launch.options)};
  auto file = std::make_unique<PrometheusFile>(directory, owner, LogOldText(launch.log, directory));
  if (const int failure = file->Start(); failure != 0) {
    launch.log->warn("{}: cannot be written: {}; the run continues without its metrics there",
                     file->path().string(), std::generic_category().message(failure));
  }
  return file;
}

}  // namespace

const LogFormat kPrometheusFile = {
    .options =
        {{"prometheus_dir",
          "directory of a text file for each rank and run, ddltraind-rank-00003-1f3a90c2.prom, "
          "with what it does now, for Prometheus' node exporter",
          kOurs, kMustMatch, kText<&Options::prometheus_dir>}},
    .open = OpenPrometheusFile,
    .is_of_each_rank = true};

}  // namespace trainer
