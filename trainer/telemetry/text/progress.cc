// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/text/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
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

std::string FormatDuration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e10) return "?";
  const auto total = static_cast<long long>(std::llround(seconds));
  const long long days = total / 86400;
  if (days == 0) return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
  return fmt::format("{}d {:02}:{:02}:{:02}", days, total / 3600 % 24, total / 60 % 60, total % 60);
}

Progress::Progress(const ProgressOptions& options, RedrawnLine& line, WallClock clock)
    : options_(options), line_(line), clock_(std::move(clock)) {}

std::string Progress::Line(const ProgressState& state, TimePoint now) const {
  const auto steps = static_cast<double>(state.step - first_step_);
  const auto left = static_cast<double>(state.total_steps - state.step);
  const double eta = steps > 0 ? left * InSeconds(now - first_time_) / steps : left > 0 ? -1 : 0;
  // People count epochs from 1; at the very end the last one stays.
  const std::string epoch =
      state.epochs > 0
          ? fmt::format(" epoch {}/{}", std::min(state.epoch + 1, state.epochs), state.epochs)
          : "";
  return fmt::format("{}{} step {}/{} {:.1f} images/s loss {:.4f} lr {:.4g} eta {}", IsoTime(now),
                     epoch, state.step, state.total_steps, state.images_per_second, state.loss,
                     state.learning_rate, FormatDuration(eta));
}

void Progress::Update(const ProgressState& state) {
  const TimePoint now = clock_();
  const bool first = first_step_ < 0;
  if (first) {
    first_step_ = state.step;
    first_time_ = now;
  }
  const double interval = options_.terminal ? options_.redraw_seconds : options_.interval_seconds;
  const bool last = state.step >= state.total_steps;
  const double since = InSeconds(now - last_print_);  // less than 0 where the clock was set back
  if (!first && !last && since >= 0 && since < interval) return;
  last_print_ = now;

  std::string line = Line(state, now);
  if (!options_.terminal) {
    line_.Write(line + "\n");
    return;
  }
  constexpr int kBarWidth = 12;
  const double fraction = static_cast<double>(state.step) /
                          static_cast<double>(std::max<std::int64_t>(state.total_steps, 1));
  line =
      Bar(fraction, kBarWidth) + " " + line.substr(line.find(' ') + 1);  // a screen needs no time
  // One column is left free: a full line would wrap and could not be redrawn.
  line.resize(std::min(line.size(), static_cast<std::size_t>(std::max(options_.columns() - 1, 1))));
  line_.Draw(options_.color ? "\x1b[32m" + line + "\x1b[0m" : line);
}

void Progress::LeaveOut(double seconds) {
  first_time_ +=
      std::chrono::duration_cast<TimePoint::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace trainer
