// SPDX-License-Identifier: Apache-2.0

#include "ddldata/convert_progress.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "support/quoting.h"

namespace trainer {

ConvertProgress::ConvertProgress(const ProgressOptions& options, std::ostream& out, WallClock clock)
    : options_(options),
      out_(out),
      clock_(std::move(clock)),
      begin_(clock_()),
      last_shown_(begin_) {}

void ConvertProgress::Begin(std::int64_t images, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  images_ = images;
  bytes_ = bytes;
  begin_ = clock_();
  last_shown_ = begin_;
}

void ConvertProgress::Listed(std::int64_t count, const std::string& what) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_();
  Show(std::to_string(count) + " " + what, now, -1);
}

void ConvertProgress::Add(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  ++images_done_;
  bytes_done_ += bytes;
  const TimePoint now = clock_();
  const double seconds = InSeconds(now - begin_);
  const double done = static_cast<double>(bytes_done_);
  const double left = static_cast<double>(bytes_) - done;
  const double fraction = bytes_ == 0 ? 1 : done / static_cast<double>(bytes_);
  const double rate = seconds > 0 ? static_cast<double>(images_done_) / seconds : 0;
  const double megabytes = seconds > 0 ? done / 1e6 / seconds : 0;
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), "%lld/%lld images %.1f %% %.1f images/s %.1f MB/s eta ",
                static_cast<long long>(images_done_), static_cast<long long>(images_),
                100 * fraction, rate, megabytes);
  Show(text.data() + FormatDuration(done > 0 ? left * seconds / done : -1), now, fraction);
}

// `fraction` of the bar, less than 0: none.
void ConvertProgress::Show(const std::string& text, TimePoint now, double fraction) {
  const double interval = options_.terminal ? options_.redraw_seconds : options_.interval_seconds;
  const bool is_last = images_ > 0 && images_done_ == images_;
  const double since = InSeconds(now - last_shown_);  // less than 0 where the clock was set back
  if (!is_last && since >= 0 && since < interval) return;
  last_shown_ = now;
  if (!options_.terminal) {
    out_ << IsoTime(now) + " " + text + "\n" << std::flush;
    return;
  }
  constexpr int kBarWidth = 12;
  std::string line = text;
  if (fraction >= 0) {
    const auto filled = static_cast<std::size_t>(std::clamp(fraction, 0.0, 1.0) * kBarWidth);
    std::string bar(kBarWidth, ' ');
    std::fill_n(bar.begin(), filled, '=');
    if (filled < bar.size()) bar[filled] = '>';
    line = "[" + bar + "] " + line;
  }
  // One column is left free: a full line would wrap and could not be redrawn.
  line.resize(std::min(line.size(), static_cast<std::size_t>(std::max(options_.columns() - 1, 1))));
  out_ << "\r" + line + "\x1b[K" << std::flush;
  line_open_ = true;
}

void ConvertProgress::Note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  EndLine();
  out_ << "ddldata: note: " + support::WithoutControls(text) + "\n" << std::flush;
}

void ConvertProgress::Break() {
  const std::lock_guard lock(mutex_);
  EndLine();
}

void ConvertProgress::EndLine() {
  if (line_open_) out_ << "\n" << std::flush;
  line_open_ = false;
}

}  // namespace trainer
