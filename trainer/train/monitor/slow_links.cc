// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/monitor/slow_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "support/number.h"
#include "trainer/comm/rank_consistency.h"

namespace trainer {

std::optional<AllReduceWaitChange> AllReduceWaitMonitor::Add(double step_seconds,
                                                             std::span<const double> busy_seconds) {
  double busiest = 0;
  for (const double seconds : busy_seconds) {
    if (seconds > busiest) busiest = seconds;  // NaN is not
  }
  if (busiest > 0) block_.waited += std::max(step_seconds - busiest, 0.0);
  block_.steps += step_seconds;
  if (++steps_ < kBlock) return std::nullopt;
  steps_ = 0;
  return EndBlock();
}

AllReduceWaitMonitor::Block AllReduceWaitMonitor::Window() const {
  Block sum;
  for (const Block& block : last_) {
    sum.waited += block.waited;
    sum.steps += block.steps;
  }
  return sum;
}

std::optional<AllReduceWaitChange> AllReduceWaitMonitor::EndBlock() {
  const Block ended = block_;
  block_ = {};
  last_[static_cast<std::size_t>(blocks_) % kBlocks] = ended;
  ++blocks_;
  if (best_ >= 0) {
    if (ended.waited / kBlock - best_ >= kLonger * ended.steps / kBlock) {
      if (long_blocks_ == 0 && !is_logged_) begun_ = blocks_ - 1;
      ++long_blocks_;
      short_blocks_ = 0;
      long_at_ = blocks_;
    } else {
      long_blocks_ = 0;
      ++short_blocks_;
    }
  }
  if (blocks_ < static_cast<std::int64_t>(kBlocks)) return std::nullopt;

  const Block window = Window();
  std::optional<AllReduceWaitChange> change;
  const bool begins = !is_logged_ && long_blocks_ == kBlocks;
  const bool ends = is_logged_ && short_blocks_ == kBlocks;
  if (begins || ends) {
    is_logged_ = begins;
    change = {.begins = begins,
              .steps = (long_at_ - begun_) * kBlock,
              .seconds = window.waited / kSteps,
              .best = best_,
              .step = window.steps / kSteps};
  }
  best_ = best_ < 0 ? window.waited / kSteps : std::min(best_, window.waited / kSteps);
  return change;
}

namespace {

constexpr std::size_t kMaxLogged = 4;
constexpr std::size_t kBytes = std::size_t{1} << 20;  // that are sent
constexpr int kRounds = 5;                            // of which the best counts

std::string RateText(double bytes_per_second) {
  return bytes_per_second >= 1e9 ? fmt::format("{:.1f} GB/s", bytes_per_second / 1e9)
                                 : fmt::format("{:.1f} MB/s", bytes_per_second / 1e6);
}

int Before(int rank, std::size_t ranks) {
  return rank > 0 ? rank - 1 : static_cast<int>(ranks) - 1;
}

// The lower of the middle two.
double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double MedianNow(std::span<const MeasuredLink> links) {
  std::vector<double> rates;
  for (const MeasuredLink& link : links) rates.push_back(link.now);
  return MedianOf(std::move(rates));
}

}  // namespace

SlowLinkReporter::SlowLinkReporter(Communicator& communicator, Logger log)
    : communicator_(communicator), log_(std::move(log)) {}

void SlowLinkReporter::Start(const std::vector<std::string>& hosts) {
  if (!hosts_.empty()) return;
  hosts_ = hosts;
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const auto before = static_cast<std::size_t>(Before(rank, hosts_.size()));
    if (hosts_[static_cast<std::size_t>(rank)] != hosts_[before]) ranks_.push_back(rank);
  }
  if (ranks_.empty()) return;
  first_ = Measure();
  if (first_.empty()) ranks_.clear();
}

void SlowLinkReporter::After(std::span<const double> busy_seconds, const StepTimes& times) {
  if (ranks_.empty()) return;
  if (communicator_.rank() == 0) {
    if (const auto change = watch_.Add(times.step, busy_seconds)) change_ = change;
  }
  if (++steps_ % AllReduceWaitMonitor::kBlock != 0) return;
  enum : std::uint8_t { kNothing, kBegins, kEnds };
  std::uint8_t said = kNothing;
  if (change_) said = change_->begins ? kBegins : kEnds;
  communicator_.Broadcast(&said, sizeof(said), 0);
  if (said == kNothing) return;
  const std::vector<double> now = said == kBegins ? Measure() : std::vector<double>();
  if (communicator_.rank() != 0) return;
  const AllReduceWaitChange change = *std::exchange(change_, std::nullopt);
  const auto links =
      change.begins ? CompareLinks(ranks_, first_, now) : std::vector<MeasuredLink>();
  log_->log(change.begins ? spdlog::level::warn : spdlog::level::info, "{}",
            DescribeSums(change, links, hosts_));
}

// What each rank hears from the one before it, in bytes/s; empty where ranks cannot send.
std::vector<double> SlowLinkReporter::Measure() {
  std::optional<double> best;
  for (int round = 0; round < kRounds; ++round) {
    const auto seconds = communicator_.SecondsFromPrevious(kBytes);
    if (!seconds) return {};
    best = best ? std::min(*best, *seconds) : *seconds;
  }
  std::vector<double> rates(static_cast<std::size_t>(communicator_.size()));
  rates[static_cast<std::size_t>(communicator_.rank())] = kBytes / *best;
  communicator_.AllReduceSum(rates);
  return rates;
}

std::vector<MeasuredLink> CompareLinks(std::span<const int> ranks, std::span<const double> first,
                                       std::span<const double> now) {
  std::vector<MeasuredLink> links;
  for (const int rank : ranks) {
    const auto index = static_cast<std::size_t>(rank);
    links.push_back({.rank = rank, .first = first[index], .now = now[index]});
  }
  const double median = MedianNow(links);
  for (MeasuredLink& link : links) {
    link.is_slow = link.now < kSlowLink * std::max(link.first, median);
  }
  std::stable_sort(links.begin(), links.end(),
                   [](const MeasuredLink& a, const MeasuredLink& b) { return a.now < b.now; });
  return links;
}

std::string DescribeSums(const AllReduceWaitChange& change, std::span<const MeasuredLink> links,
                         std::span<const std::string> hosts) {
  if (!change.begins) {
    return fmt::format("the all-reduce takes no longer than before; they did for {} steps",
                       change.steps);
  }
  std::string text = fmt::format(
      "for {} steps ranks have waited for their sums {:.1f} ms in each, {:.1f} before (the whole "
      "step takes {:.1f}): ",
      change.steps, change.seconds * 1e3, change.best * 1e3, change.step * 1e3);
  const auto slow = static_cast<std::size_t>(
      std::count_if(links.begin(), links.end(), [](const auto& link) { return link.is_slow; }));
  if (slow == 0) {
    return text + "now no link between hosts is slower than it was when training began";
  }
  std::size_t logged = 0;
  for (const MeasuredLink& link : links) {
    if (!link.is_slow) continue;
    const int before = Before(link.rank, hosts.size());
    text += fmt::format("{}{} hears from {} at {}, {} when training began", logged == 0 ? "" : "; ",
                        NameOfRank(link.rank, hosts[static_cast<std::size_t>(link.rank)]),
                        NameOfRank(before, hosts[static_cast<std::size_t>(before)]),
                        RateText(link.now), RateText(link.first));
    if (++logged == kMaxLogged) break;
  }
  if (slow > logged) text += "; " + support::Counted(slow - logged, "more link") + " of this kind";
  return text + fmt::format(" (median of the {}: {})", support::Counted(links.size(), "link"),
                            RateText(MedianNow(links)));
}

}  // namespace trainer
