// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/status_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string_view>

#include "support/build.h"
#include "support/number.h"
#include "trainer/telemetry/text/clock.h"

namespace ddlctl {

using trainer::RunStatus;

namespace {

std::string Row(const char* name, const std::string& value) {
  return fmt::format("{:<14} {}\n", name, value);
}

}  // namespace

std::string NumberText(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : "?";
}

std::string RejectionText(const trainer::ControlAnswer& answer) {
  const std::string own = support::ProgramVersion();
  const std::string& other = answer.status.identity.version;
  if (other == own) return Harmless(answer.rejection);
  return Harmless(
      fmt::format("{} (it is ddltraind {}, this is ddlctl {})", answer.rejection, other, own));
}

std::string Harmless(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return text;
}

std::string StepText(const RunStatus& status) {
  return fmt::format("step {}/{}", status.step, status.steps);
}

// People count epochs from 1; at the very end the last one stays.
std::string EpochText(const RunStatus& status) {
  if (status.epochs <= 0) return "";
  return fmt::format("epoch {}/{}", std::min(status.epoch, status.epochs - 1) + 1, status.epochs);
}

std::string RequestedText(const RunStatus& status) {
  std::string text;
  for (const trainer::ControlCommand command : status.requested) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", NameOf(command));
  }
  return text;
}

std::string StatusText(const RunStatus& status) {
  const trainer::RunIdentity& identity = status.identity;
  const std::string epoch = EpochText(status);
  std::string text = Row("state", std::string(NameOf(status.state)));
  text += Row("progress", StepText(status) + (epoch.empty() ? "" : ", " + epoch));
  text +=
      Row("speed", fmt::format("{} images/s, {} ms a step", NumberText(status.images_per_second, 1),
                               NumberText(status.times.step * 1e3, 1)));
  for (const LoadRow& row : LoadRows(status)) {
    text += fmt::format("{:<{}} {:>10}  {}\n", row.name, kLoadNameColumns, row.time, row.rest);
  }
  text += Row("loss", NumberText(status.loss, 4));
  text += Row("eta", trainer::FormatDuration(status.eta_seconds));
  text += Row("checkpoint", status.checkpoint_step < 0
                                ? std::string("none")
                                : fmt::format("step {}", status.checkpoint_step));
  text += Row("display_every", std::to_string(status.display_every));
  if (!status.requested.empty()) text += Row("asked for", RequestedText(status));
  text += Row("ranks", std::to_string(identity.ranks));
  text += Row("rank 0", fmt::format("process {} on {}{}", identity.pid, Harmless(identity.host),
                                    identity.job.empty() ? "" : ", job " + Harmless(identity.job)));
  text += Row("version", "ddltraind " + Harmless(identity.version));
  return text;
}

std::string StatusLine(const RunStatus& status) {
  const std::string epoch = EpochText(status);
  const std::string requested = RequestedText(status);
  const std::string slowest = SlowestText(status);
  return fmt::format(
      "{} {}{} {} images/s loss {} eta {} checkpoint {}{}{}", NameOf(status.state),
      StepText(status), epoch.empty() ? "" : " " + epoch, NumberText(status.images_per_second, 1),
      NumberText(status.loss, 4), trainer::FormatDuration(status.eta_seconds),
      status.checkpoint_step < 0 ? std::string("none") : std::to_string(status.checkpoint_step),
      slowest.empty() ? "" : " " + slowest, requested.empty() ? "" : " asked for " + requested);
}

namespace {

using trainer::RankLoad;

constexpr std::size_t kShownAll = 6;
constexpr std::size_t kShownOfMany = 4;
constexpr double kWorthSaying = 0.05;  // above the median

// " +25 %" against the median.
std::string ExcessText(double seconds, double median) {
  return std::isfinite(median) && median > 0
             ? fmt::format("{:+4.0f} %", (seconds / median - 1) * 100)
             : std::string("   ? %");
}

// The name of a node as the job has it, without its domain.
std::string HostOf(const RankLoad& load) {
  return Harmless(load.host.substr(0, load.host.find('.')));
}

std::string DeviceText(const RankLoad& load) {
  std::string text;
  if (std::isfinite(load.input_wait_seconds) && load.busy_seconds > 0) {
    text += fmt::format("  data {:2.0f} %",
                        std::clamp(load.input_wait_seconds / load.busy_seconds, 0.0, 1.0) * 100);
  }
  if (load.gpu_percent) text += fmt::format("  GPU {:2d} %", *load.gpu_percent);
  if (load.compute_mhz) text += fmt::format("  {:4d} MHz", *load.compute_mhz);
  if (load.celsius) text += fmt::format("  {:2d} C", *load.celsius);
  return text;
}

std::string TimeText(double seconds) { return NumberText(seconds * 1e3, 1) + " ms"; }

}  // namespace

std::vector<LoadRow> LoadRows(const RunStatus& status) {
  std::vector<RankLoad> loads = status.loads;
  if (loads.empty()) return {};
  const auto ranks = static_cast<std::size_t>(std::max(status.identity.ranks, 1));
  const int slowest = std::ranges::max_element(loads, {}, &RankLoad::busy_seconds)->rank;
  double next = 0;  // of those that are not shown, the slowest
  if (ranks > kShownAll && loads.size() > kShownOfMany) {
    std::ranges::stable_sort(loads, std::greater(), &RankLoad::busy_seconds);
    next = loads[kShownOfMany].busy_seconds;
    loads.resize(kShownOfMany);
  }
  std::vector<LoadRow> rows = {{"own time, median", TimeText(status.median_busy_seconds),
                                "of " + support::Counted(static_cast<long long>(ranks), "rank") +
                                    (ranks > 1 ? "; >: slowest" : "")}};
  for (const RankLoad& load : loads) {
    const std::string host = HostOf(load);
    const std::string name =
        fmt::format("{} rank {}{}", ranks > 1 && load.rank == slowest ? ">" : " ", load.rank,
                    host.empty() ? "" : ", " + host);
    rows.push_back({name.substr(0, kLoadNameColumns), TimeText(load.busy_seconds),
                    ExcessText(load.busy_seconds, status.median_busy_seconds) + DeviceText(load)});
  }
  if (next > 0) {
    rows.push_back({fmt::format("  {} more, up to", ranks - loads.size()), TimeText(next),
                    ExcessText(next, status.median_busy_seconds)});
  }
  return rows;
}

std::string SlowestText(const RunStatus& status) {
  if (status.loads.size() < 2 || !(status.median_busy_seconds > 0)) return "";
  const RankLoad& load = *std::ranges::max_element(status.loads, {}, &RankLoad::busy_seconds);
  const double excess = load.busy_seconds / status.median_busy_seconds - 1;
  if (!(excess >= kWorthSaying)) return "";
  const std::string host = HostOf(load);
  return fmt::format("slowest rank {}{} {:+.0f} %", load.rank, host.empty() ? "" : " on " + host,
                     excess * 100);
}

namespace {

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
