// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/repeat_progress.h"

#include <exception>
#include <span>
#include <utility>

#include "bench/ddlbench/log_analysis/mila_report.h"

namespace bench {

RepeatProgress::RepeatProgress(std::filesystem::path log, std::int64_t global_batch, int repeat,
                               int number, std::ostream& out, std::string prefix)
    : path_(std::move(log)),
      global_batch_(global_batch),
      repeat_(repeat),
      number_(number),
      out_(out),
      prefix_(std::move(prefix)) {}

void RepeatProgress::Show() noexcept {
  if (has_failed_) return;
  try {
    if (!lines_) lines_.emplace(path_, /*is_growing=*/true);
    for (LogLine line; lines_->Next(line);) {
      steps_.Add(line.text);
      const auto ended = static_cast<int>(steps_.steps().size()) / number_;
      if (ended > shown_ && shown_ < repeat_) ShowObservation();
    }
    out_ << std::flush;
  } catch (const std::exception&) {
    has_failed_ = true;  // what is wrong is said when the run has ended
  }
}

void RepeatProgress::ShowObservation() {
  const std::span<const RunStep> steps = steps_.steps();
  const auto number = static_cast<std::size_t>(number_);
  const double last = ObservationsOf(steps.last(number), global_batch_, 1, number_).front();
  const int counted = shown_ + 1 - kSkippedObservations;
  if (counted > 0) counted_seconds_ += last;
  const double seconds = counted > 0 ? counted_seconds_ / counted : last;
  out_ << prefix_ << FormatEta(shown_++, repeat_, seconds, steps.back().cross_entropy) << "\n";
}

}  // namespace bench
