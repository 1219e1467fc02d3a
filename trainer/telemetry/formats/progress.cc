// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace trainer {
namespace {

// "[=====>    ]"
std::string Bar(double fraction, int width) {
  const int filled = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * width);
  std::string bar(static_cast<std::size_t>(width), ' ');
  std::fill_n(bar.begin(), filled, '=');
  if (filled < width) bar[static_cast<std::size_t>(filled)] = '>';
  return "[" + bar + "]";
}

}  // namespace

Progress::Progress(const ProgressOptions& options, RedrawnLine& line, WallClock clock)
    : options_(options), line_(line), clock_(std::move(clock)) {}

std::string Progress::Line(const StepMetrics& metrics, TimePoint now) const {
  const auto steps = static_cast<double>(metrics.steps_done() - first_step_);
  const auto left = static_cast<double>(metrics.total_steps - metrics.steps_done());
  const double eta = steps > 0 ? left * InSeconds(now - first_time_) / steps : left > 0 ? -1 : 0;
  // People count epochs from 1; at the very end the last one stays.
  const std::string epoch =
      metrics.epochs > 0
          ? fmt::format(" epoch {}/{}", std::min(metrics.epoch + 1, metrics.epochs), metrics.epochs)
          : "";
  return fmt::format("{}{} step {}/{} {:.1f} images/s loss {:.4f} lr {:.4g} eta {}", IsoTime(now),
                     epoch, metrics.steps_done(), metrics.total_steps, metrics.images_per_second,
                     metrics.total_loss, metrics.learning_rate, FormatDuration(eta));
}

void Progress::Step(const StepMetrics& metrics) {
  const TimePoint now = clock_();
  const bool first = first_step_ < 0;
  if (first) {
    first_step_ = metrics.steps_done();
    first_time_ = now;
  }
  const double interval = options_.terminal ? options_.redraw_seconds : options_.interval_seconds;
  const bool last = metrics.steps_done() >= metrics.total_steps;
  const double since = InSeconds(now - last_print_);  // less than 0 where the clock was set back
  if (!first && !last && since >= 0 && since < interval) return;
  last_print_ = now;

  std::string line = Line(metrics, now);
  if (!options_.terminal) {
    line_.Write(line + "\n");
    return;
  }
  constexpr int kBarWidth = 12;
  const double fraction = static_cast<double>(metrics.steps_done()) /
                          static_cast<double>(std::max<std::int64_t>(metrics.total_steps, 1));
  line =
      Bar(fraction, kBarWidth) + " " + line.substr(line.find(' ') + 1);  // a screen needs no time
  // One column is left free: a full line would wrap and could not be redrawn.
  line.resize(std::min(line.size(), static_cast<std::size_t>(std::max(options_.columns() - 1, 1))));
  line_.Draw(options_.color ? "\x1b[32m" + line + "\x1b[0m" : line);
}

void Progress::Resume(double seconds) {
  first_time_ +=
      std::chrono::duration_cast<TimePoint::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace trainer
