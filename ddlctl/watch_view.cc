// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/watch_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "ddlctl/load_view.h"
#include "ddlctl/status_text.h"
#include "support/number.h"
#include "trainer/telemetry/text/clock.h"

namespace ddlctl {
namespace {

using trainer::RunStatus;

constexpr std::size_t kLevels = 8;
constexpr std::array<std::string_view, kLevels> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, kLevels> kAscii = {"_", ".", "-", "~", "=", "+", "*", "#"};

// Of the columns before curves and bars.
constexpr int kNameColumns = kLoadNameColumns;
constexpr int kNumberColumns = 10;

bool ContinuesLetter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80; }

std::size_t Letters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !ContinuesLetter(byte); }));
}

// The first `most` letters.
std::string Clipped(const std::string& text, std::size_t max) {
  std::size_t letters = 0;
  std::size_t end = 0;
  while (end < text.size() && (letters < max || ContinuesLetter(text[end]))) {
    if (!ContinuesLetter(text[end])) ++letters;
    ++end;
  }
  return text.substr(0, end);
}

// `right` at the right end, where there is room for both.
std::string Spread(const std::string& left, const std::string& right, std::size_t width) {
  const std::size_t used = Letters(left) + Letters(right);
  if (used + 2 > width) return left;
  return left + std::string(width - used, ' ') + right;
}

std::string ProgressBar(double fraction, int width) {
  const int filled = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * width);
  std::string bar(static_cast<std::size_t>(std::max(width, 0)), ' ');
  std::fill_n(bar.begin(), filled, '=');
  if (filled < width) bar[static_cast<std::size_t>(filled)] = '>';
  return "[" + bar + "]";
}

std::string Row(std::string_view name, const std::string& number, const std::string& rest) {
  return fmt::format("{:<{}} {:>{}}  {}", name, kNameColumns, number, kNumberColumns, rest);
}

}  // namespace

void Seen::Add(const RunStatus& status) {
  if (status.step == step_ || !std::isfinite(status.images_per_second)) return;
  step_ = status.step;
  speeds_.push_back(status.images_per_second);
  losses_.push_back(status.loss);
  if (speeds_.size() > kMax) speeds_.pop_front();
  if (losses_.size() > kMax) losses_.pop_front();
}

std::string Sparkline(const std::deque<double>& values, std::size_t width, bool is_utf8) {
  const auto begin = values.end() - static_cast<std::ptrdiff_t>(std::min(width, values.size()));
  double min = INFINITY;
  double max = -INFINITY;
  for (auto value = begin; value != values.end(); ++value) {
    if (!std::isfinite(*value)) continue;
    min = std::min(min, *value);
    max = std::max(max, *value);
  }
  std::string text;
  for (auto value = begin; value != values.end(); ++value) {
    if (!std::isfinite(*value)) {
      text += ' ';
      continue;
    }
    // Values that are all alike lie in the middle.
    const double share = max > min ? (*value - min) / (max - min) : 0.5;
    const auto level = std::min(static_cast<std::size_t>(share * kLevels), kLevels - 1);
    text += is_utf8 ? kBlocks[level] : kAscii[level];
  }
  return text;
}

std::vector<std::string> Draw(const RunStatus& status, const Seen& seen, const Screen& screen) {
  // One column is left free: a full line would wrap on some terminals.
  const int width = std::max(screen.columns - 1, 1);
  const int rest = std::max(width - kNameColumns - kNumberColumns - 3, 0);
  const auto rest_letters = static_cast<std::size_t>(rest);
  const double fraction = static_cast<double>(status.step) /
                          static_cast<double>(std::max<std::int64_t>(status.steps, 1));
  const std::string epoch = EpochText(status);
  std::vector<std::string> lines;
  lines.push_back(Spread(fmt::format("{}  {}{}", NameOf(status.state), StepText(status),
                                     epoch.empty() ? "" : "  " + epoch),
                         fmt::format("{}, {}", support::Counted(status.identity.ranks, "rank"),
                                     Harmless(status.identity.host)),
                         static_cast<std::size_t>(width)));
  const std::string left = fmt::format(" {:5.1f} %, {} left", fraction * 100,
                                       trainer::FormatDuration(status.eta_seconds));
  lines.push_back(ProgressBar(fraction, width - static_cast<int>(left.size()) - 2) + left);
  lines.push_back(Row("images/s", NumberText(status.images_per_second, 1),
                      Sparkline(seen.speeds(), rest_letters, screen.is_utf8)));
  lines.push_back(Row("loss", NumberText(status.loss, 4),
                      Sparkline(seen.losses(), rest_letters, screen.is_utf8)));
  if (status.times.step > 0) {
    lines.push_back(Row("step", NumberText(status.times.step * 1e3, 1) + " ms", ""));
    for (std::size_t i = 0; i < trainer::kStepPhases; ++i) {
      const double seconds = status.times.phases[i];
      const double share = std::clamp(seconds / status.times.step, 0.0, 1.0);
      lines.push_back(Row("  " + std::string(NameOf(static_cast<trainer::StepPhase>(i))),
                          NumberText(seconds * 1e3, 1) + " ms",
                          std::string(static_cast<std::size_t>(std::lround(share * rest)), '#')));
    }
  }
  for (const LoadRow& row : LoadRows(status)) lines.push_back(Row(row.name, row.time, row.rest));
  std::string last = status.checkpoint_step < 0
                         ? std::string("no checkpoint yet")
                         : fmt::format("checkpoint of step {}", status.checkpoint_step);
  if (!status.requested.empty()) last += "; asked for: " + RequestedText(status);
  lines.push_back(last);
  const auto room = static_cast<std::size_t>(std::max(screen.rows - 1, 1));
  if (screen.rows > 0 && lines.size() > room) lines.resize(room);
  for (std::string& line : lines) {
    line = Clipped(line, static_cast<std::size_t>(width));
    line.erase(line.find_last_not_of(' ') + 1);
  }
  return lines;
}

}  // namespace ddlctl
