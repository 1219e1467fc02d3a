// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/nvlog.h"

#include <cstdio>
#include <string>
#include <utility>

namespace trainer {
namespace {

// "75.863" from 0.75863.
std::string Percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", fraction * 100);
  return text;
}

}  // namespace

NvLog::NvLog(std::ostream& out, WallClock clock) : out_(out), clock_(std::move(clock)) {}

void NvLog::Text(std::string_view call_site, std::string_view text) {
  std::string line = ":::NVLOGv0.2.3 resnet " + UnixSeconds(clock_(), 9) + " (";
  line.append(call_site).append(") ").append(text).append("\n");
  out_ << line << std::flush;
}

void NvLog::Value(std::string_view call_site, std::string_view key, const LogValue& value) {
  Text(call_site, std::string(key) + ": " + PythonJson(value));
}

void NvLog::StartTraining(const TrainingSummary& summary) {
  Text("runner.py:365", "Starting Model Training...");
  Value("runner.py:366", "Training Epochs", summary.epochs);
  Value("runner.py:367", "Total Steps", summary.total_steps);
  Value("runner.py:368", "Steps per Epoch", summary.steps_per_epoch);
  Value("runner.py:369", "Decay Steps", summary.decay_steps);
  Value("runner.py:370", "Weight Decay Factor", summary.weight_decay);
  Value("runner.py:371", "Init Learning Rate", summary.initial_learning_rate);
  Value("runner.py:372", "Momentum", summary.momentum);
  Value("runner.py:373", "Num GPUs", std::int64_t{summary.world_size});
  Value("runner.py:374", "Per-GPU Batch Size", summary.batch_per_rank);
}

void NvLog::Step(const StepMetrics& metrics) {
  if (metrics.is_displayed) {
    Value("training_hooks.py:100", "iteration", metrics.launch_step);
    Value("training_hooks.py:101", "imgs_per_sec", metrics.images_per_second);
    Value("training_hooks.py:102", "cross_entropy", metrics.cross_entropy);
    Value("training_hooks.py:103", "l2_loss", metrics.l2_loss);
    Value("training_hooks.py:104", "total_loss", metrics.total_loss);
    Value("training_hooks.py:105", "learning_rate", metrics.learning_rate);
  }
  if (!metrics.ends_epoch) return;
  Value("training_hooks.py:112", "epoch", metrics.epoch);
  Value("training_hooks.py:113", "final_cross_entropy", metrics.cross_entropy);
  Value("training_hooks.py:114", "final_l2_loss", metrics.l2_loss);
  Value("training_hooks.py:115", "final_total_loss", metrics.total_loss);
  Value("training_hooks.py:116", "final_learning_rate", metrics.learning_rate);
}

void NvLog::EndTraining(std::optional<double> /*images_per_second*/) {
  Text("runner.py:488", "Ending Model Training ...");
}

void NvLog::StartEvaluation(const EvaluationSummary& summary) {
  Text("runner.py:555", "Starting Model Evaluation...");
  Value("runner.py:556", "Evaluation Epochs", std::int64_t{1});
  Value("runner.py:557", "Evaluation Steps", summary.steps);
  Value("runner.py:558", "Decay Steps", std::int64_t{-1});  // as there: it has no schedule
  Value("runner.py:559", "Global Batch Size", summary.global_batch);
}

void NvLog::EndEvaluation(const EvaluationMetrics& metrics) {
  Text("runner.py:610", "Top-1 Accuracy: " + Percent(metrics.top1));
  Text("runner.py:611", "Top-5 Accuracy: " + Percent(metrics.top5));
  Text("runner.py:630", "Ending Model Evaluation ...");
}

}  // namespace trainer
