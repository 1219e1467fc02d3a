// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/training_json.h"

#include <utility>

#include "trainer/telemetry/text/python_format.h"

namespace trainer {
namespace {

// [a, b] of what `value` says of each entry.
template <typename Entry, typename Value>
std::string List(const std::vector<Entry>& entries, Value value) {
  std::string text = "[";
  for (const Entry& entry : entries) {
    if (text.size() > 1) text += ", ";
    text += value(entry);
  }
  return text + "]";
}

using Metric = double IterationMetrics::*;

}  // namespace

TrainingJson::TrainingJson(std::filesystem::path path, std::function<void(int error)> on_loss,
                           WallClock clock)
    : file_(std::move(path), std::move(on_loss)), clock_(std::move(clock)), written_(clock_()) {}

void TrainingJson::Iteration(const IterationMetrics& metrics, bool is_displayed) {
  if (is_displayed) iterations_.back().push_back({steps_in_epoch_, metrics});
  ++steps_in_epoch_;
}

void TrainingJson::Epoch(std::int64_t epoch, const IterationMetrics& last) {
  epochs_.push_back({epoch, last});
  iterations_.emplace_back();
  steps_in_epoch_ = 0;
  // A clock that was set back is no reason to wait.
  const double since = InSeconds(clock_() - written_);
  if (since < 0 || since >= kSecondsBetweenWrites) file_.Write(Text());
}

std::string TrainingJson::Text() {
  written_ = clock_();
  const auto of_epochs = [&](const char* key, auto value) {
    return ",\n    \"" + std::string(key) + "\": " + List(epochs_, value);
  };
  const auto of_metric = [&](const char* key, Metric metric) {
    return of_epochs(key, [=](const EpochEntry& entry) { return PythonJson(entry.last.*metric); });
  };
  const auto of_iterations = [&](const char* key, auto value) {
    return ",\n    \"" + std::string(key) +
           "\": " + List(iterations_, [&](const auto& entries) { return List(entries, value); });
  };
  const auto of_iterations_metric = [&](const char* key, Metric metric) {
    return of_iterations(
        key, [=](const IterationEntry& entry) { return PythonJson(entry.metrics.*metric); });
  };
  const auto epoch = [](const EpochEntry& entry) { return std::to_string(entry.epoch); };
  const auto x = [](const IterationEntry& entry) { return std::to_string(entry.x); };
  const auto iteration = [](const IterationEntry& entry) {
    return std::to_string(entry.metrics.iteration);
  };
  const std::string epochs = of_epochs("x", epoch) + of_epochs("epoch", epoch) +
                             of_metric("final_cross_entropy", &IterationMetrics::cross_entropy) +
                             of_metric("final_l2_loss", &IterationMetrics::l2_loss) +
                             of_metric("final_total_loss", &IterationMetrics::total_loss) +
                             of_metric("final_learning_rate", &IterationMetrics::learning_rate);
  const std::string iterations =
      of_iterations("x", x) + of_iterations("iteration", iteration) +
      of_iterations_metric("imgs_per_sec", &IterationMetrics::images_per_second) +
      of_iterations_metric("cross_entropy", &IterationMetrics::cross_entropy) +
      of_iterations_metric("l2_loss", &IterationMetrics::l2_loss) +
      of_iterations_metric("total_loss", &IterationMetrics::total_loss) +
      of_iterations_metric("learning_rate", &IterationMetrics::learning_rate);
  // Without the first comma.
  return "{\n\"run\": {},\n\"epoch\": {" + epochs.substr(1) + "\n},\n\"iter\": {" +
         iterations.substr(1) + "\n},\n\"event\": {}\n}\n";
}

}  // namespace trainer
