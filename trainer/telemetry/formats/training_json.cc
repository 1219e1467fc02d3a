// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/training_json.h"

#include <utility>

#include "trainer/telemetry/text/python_format.h"

namespace trainer {
namespace {

// Appends "[a, b]", to which `append` adds each entry.  Straight to the text of the file: a million
// steps make 100 MB, of which no part is to be there twice.
template <typename Entries, typename Append>
void AppendList(std::string* text, const Entries& entries, Append append) {
  *text += '[';
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) *text += ", ";
    append(entries[i]);
  }
  *text += ']';
}

}  // namespace

TrainingJson::TrainingJson(std::filesystem::path path, std::function<void(int error)> on_loss,
                           WallClock clock)
    : file_(std::move(path), std::move(on_loss)), clock_(std::move(clock)), written_(clock_()) {}

TrainingJson::Entry TrainingJson::EntryOf(std::int64_t x, std::int64_t number,
                                          const StepMetrics& metrics) {
  return {x,
          number,
          metrics.images_per_second,
          metrics.cross_entropy,
          metrics.l2_loss,
          metrics.total_loss,
          metrics.learning_rate};
}

void TrainingJson::Step(const StepMetrics& metrics) {
  if (metrics.is_displayed) {
    iterations_.back().push_back(EntryOf(steps_in_epoch_, metrics.launch_step, metrics));
  }
  ++steps_in_epoch_;
  if (!metrics.ends_epoch) return;
  epochs_.push_back(EntryOf(metrics.epoch, metrics.epoch, metrics));
  iterations_.emplace_back();
  steps_in_epoch_ = 0;
  // A clock that was set back is no reason to wait.
  const double since = InSeconds(clock_() - written_);
  if (since < 0 || since >= kSecondsBetweenWrites) file_.Write(Text());
}

std::string TrainingJson::Text() {
  written_ = clock_();
  std::string text = "{\n\"run\": {},\n\"epoch\": {";
  const auto begin = [&text](const char* key) {
    text += std::string(text.ends_with('{') ? "" : ",") + "\n    \"" + key + "\": ";
  };
  const auto list = [&text](const std::vector<Entry>& entries, auto field) {
    AppendList(&text, entries, [&](const Entry& entry) { text += PythonJson(entry.*field); });
  };
  const auto of_epochs = [&](const char* key, auto field) {
    begin(key);
    list(epochs_, field);
  };
  const auto of_iterations = [&](const char* key, auto field) {
    begin(key);
    AppendList(&text, iterations_, [&](const auto& entries) { list(entries, field); });
  };
  of_epochs("x", &Entry::x);
  of_epochs("epoch", &Entry::number);
  of_epochs("final_cross_entropy", &Entry::cross_entropy);
  of_epochs("final_l2_loss", &Entry::l2_loss);
  of_epochs("final_total_loss", &Entry::total_loss);
  of_epochs("final_learning_rate", &Entry::learning_rate);
  text += "\n},\n\"iter\": {";
  of_iterations("x", &Entry::x);
  of_iterations("iteration", &Entry::number);
  of_iterations("imgs_per_sec", &Entry::images_per_second);
  of_iterations("cross_entropy", &Entry::cross_entropy);
  of_iterations("l2_loss", &Entry::l2_loss);
  of_iterations("total_loss", &Entry::total_loss);
  of_iterations("learning_rate", &Entry::learning_rate);
  text += "\n},\n\"event\": {}\n}\n";
  return text;
}

}  // namespace trainer
