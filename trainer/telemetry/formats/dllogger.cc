// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/dllogger.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace trainer {
namespace {

std::string Join(const DlStep& step) {
  std::string text;
  for (const std::int64_t part : step) {
    if (!text.empty()) text += ", ";
    text += std::to_string(part);
  }
  return text;
}

// str(tuple): "()", "(0,)", "(0, 20)".
std::string Tuple(const DlStep& step) { return "(" + Join(step) + (step.size() == 1 ? ",)" : ")"); }

double SecondsToTheMicrosecond(TimePoint::duration duration) {
  // Microseconds, as Python's datetime has them.
  return static_cast<double>(
             std::chrono::duration_cast<std::chrono::microseconds>(duration).count()) /
         1e6;
}

// str(datetime.timestamp()).
std::string Timestamp(TimePoint time) {
  return PythonFloat(SecondsToTheMicrosecond(time.time_since_epoch()));
}

}  // namespace

DlLogger::DlLogger(std::ostream* text, std::ostream* json, WallClock clock)
    : text_(text), json_(json), clock_(std::move(clock)), start_(clock_()) {}

std::string DlLogger::ElapsedSeconds(TimePoint now) const {
  return PythonFloat(SecondsToTheMicrosecond(now - start_));
}

void DlLogger::Metadata(const std::string& metric, const DlData& metadata) {
  waiting_.emplace_back([=, this] { WriteMetadata(metric, metadata); });
}

void DlLogger::Parameters(const DlData& data) {
  waiting_.emplace_back([=, this] { Write("PARAMETER", "\"PARAMETER\"", data); });
}

void DlLogger::WriteMetadata(const std::string& metric, const DlData& metadata) {
  if (json_ == nullptr) return;
  const TimePoint now = clock_();
  *json_ << fmt::format(
                "DLLL {{\"timestamp\": \"{}\", \"elapsedtime\": \"{}\", \"datetime\": \"{}\", "
                "\"type\": \"METADATA\", \"metric\": {}, \"metadata\": {}}}\n",
                Timestamp(now), ElapsedSeconds(now), PythonDatetime(now), PythonJson(metric),
                PythonJson(metadata))
         << std::flush;
}

void DlLogger::StartRun() {
  for (const auto& write : std::exchange(waiting_, {})) write();
}

void DlLogger::Log(const DlStep& step, const DlData& data) {
  StartRun();
  Write(Tuple(step), "[" + Join(step) + "]", data);
}

void DlLogger::Step(const StepMetrics& metrics) {
  if (metrics.launch_step < kUnloggedSteps) return;
  Log({metrics.epoch, metrics.step}, {{"imgs_per_sec", metrics.images_per_second},
                                      {"cross_entropy", metrics.cross_entropy},
                                      {"l2_loss", metrics.l2_loss},
                                      {"total_loss", metrics.total_loss},
                                      {"learning_rate", metrics.learning_rate}});
}

void DlLogger::EndTraining(std::optional<double> images_per_second) {
  if (images_per_second) Log({}, {{"train_throughput", *images_per_second}});
}

void DlLogger::EndEvaluation(const EvaluationMetrics& metrics) {
  Log({}, {{"top1_accuracy", metrics.top1},
           {"top5_accuracy", metrics.top5},
           {"eval_loss", metrics.cross_entropy},
           {"eval_throughput", metrics.images_per_second}});
}

void DlLogger::EndInferenceBenchmark(double images_per_second) {
  Log({}, {{"eval_throughput", images_per_second}});
}

void DlLogger::Write(const std::string& text_step, const std::string& json_step,
                     const DlData& data) {
  const TimePoint now = clock_();
  if (text_ != nullptr) {
    std::string line = "DLL " + PythonDatetime(now) + " - " + text_step;
    if (data.empty()) line += " ";
    for (const auto& [key, value] : data) {
      line.append(" ").append(key).append(" : ").append(PythonString(value)).append(" ");
    }
    *text_ << line + "\n" << std::flush;
  }
  if (json_ != nullptr) {
    *json_ << fmt::format(
                  "DLLL {{\"timestamp\": \"{}\", \"datetime\": \"{}\", \"elapsedtime\": \"{}\", "
                  "\"type\": \"LOG\", \"step\": {}, \"data\": {}}}\n",
                  Timestamp(now), PythonDatetime(now), ElapsedSeconds(now), json_step,
                  PythonJson(data))
           << std::flush;
  }
}

}  // namespace trainer
