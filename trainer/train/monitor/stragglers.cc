// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/monitor/stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "support/number.h"
#include "trainer/comm/rank_consistency.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr double kRounding = 1e-9;  // of sums of seconds, as a share of them

// The lower of the middle two.
double MedianOf(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

bool SlowBlocks::Add(bool is_slow, std::int64_t block) {
  if (is_slow) {
    if (slow_ == 0 && !is_slow_) before_ = block - 1;
    last_ = block;
  }
  slow_ = is_slow ? slow_ + 1 : 0;
  quick_ = is_slow ? 0 : quick_ + 1;
  const bool changes = is_slow_ ? quick_ == needed_ : slow_ == needed_;
  if (changes) is_slow_ = !is_slow_;
  return changes;
}

StragglerDetector::StragglerDetector(int ranks)
    : ranks_(static_cast<std::size_t>(ranks)),
      history_(ranks_.size() * kBlocks),
      medians_(kBlocks) {
  sums_.reserve(ranks_.size());
}

std::vector<StragglerTransition> StragglerDetector::Add(std::span<const double> busy_seconds) {
  DDL_CHECK(busy_seconds.size() == ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const double seconds = busy_seconds[i];
    ranks_[i].is_known = ranks_[i].is_known && std::isfinite(seconds) && seconds > 0;
    ranks_[i].sum += seconds;
  }
  std::vector<StragglerTransition> changes;
  if (++steps_ == kBlock) EndBlock(changes);
  return changes;
}

// 0 if nobody's is known.
double StragglerDetector::MedianOfBlock() {
  sums_.clear();
  for (const Rank& rank : ranks_) {
    if (rank.is_known) sums_.push_back(rank.sum);
  }
  return sums_.empty() ? 0 : MedianOf(sums_);
}

void StragglerDetector::EndBlock(std::vector<StragglerTransition>& changes) {
  const double median = MedianOfBlock();
  const auto place = static_cast<std::size_t>(blocks_ % kBlocks);
  ++blocks_;
  medians_[place] = median;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    history_[place * ranks_.size() + i] = ranks_[i].is_known ? ranks_[i].sum : median;
    if (ranks_[i].is_known) Check(static_cast<int>(i), median, changes);
    ranks_[i].sum = 0;
    ranks_[i].is_known = true;
  }
  steps_ = 0;
}

void StragglerDetector::Check(int rank, double median, std::vector<StragglerTransition>& changes) {
  const auto index = static_cast<std::size_t>(rank);
  SlowBlocks& slow = ranks_[index].slow;
  const bool is_slow = ranks_[index].sum >= (1 + kSlower) * (1 - kRounding) * median;
  if (!slow.Add(is_slow, blocks_)) return;
  StragglerTransition change = {
      .rank = rank, .begins = slow.is_slow(), .steps = slow.count() * kBlock};
  for (std::size_t place = 0; place < medians_.size(); ++place) {
    change.seconds += history_[place * ranks_.size() + index] / kSteps;
  }
  change.median = std::accumulate(medians_.begin(), medians_.end(), 0.0) / kSteps;
  changes.push_back(change);
}

namespace {

// What a straggler says of itself, as all ranks pass it on; what is longer is cut.
struct StragglerMessage {
  std::array<char, 128> host{};
  std::array<char, 512> own{};
};

template <std::size_t size>
void CopyText(const std::string& text, std::array<char, size>& letters) {
  std::copy_n(text.begin(), std::min(text.size(), size - 1), letters.begin());
}

}  // namespace

StragglerReporter::StragglerReporter(StragglerReporterDeps deps)
    : deps_(std::move(deps)), watch_(deps_.communicator.size()) {}

void StragglerReporter::After(std::span<const double> busy_seconds, const StepTimes& times) {
  if (deps_.communicator.size() == 1) return;
  recent_.Add(times);
  const std::vector<StragglerTransition> changes = watch_.Add(busy_seconds);
  for (std::size_t i = 0; i < std::min(changes.size(), kMaxLogged); ++i) Tell(changes[i]);
  if (changes.size() > kMaxLogged && deps_.communicator.rank() == 0) {
    deps_.log->warn("the same of {}", support::Counted(changes.size() - kMaxLogged, "more rank"));
  }
}

std::string StragglerReporter::Own() const {
  const StepTimes mean = recent_.Mean();
  std::string text = "ms: ";
  for (const StepPhase phase : kOwnPhases) {
    text += fmt::format("{} {:.1f}, ", NameOf(phase), mean[phase] * 1e3);
  }
  text.resize(text.size() - 2);
  const std::string device = deps_.describe_device ? deps_.describe_device() : "";
  return device.empty() ? text : text + "; " + device;
}

void StragglerReporter::Tell(const StragglerTransition& change) {
  Communicator& communicator = deps_.communicator;
  StragglerMessage words;
  if (communicator.rank() == change.rank) {
    CopyText(deps_.host, words.host);
    CopyText(Own(), words.own);
  }
  communicator.Broadcast(&words, sizeof(words), change.rank);
  if (communicator.rank() != 0) return;
  deps_.log->log(
      change.begins ? spdlog::level::warn : spdlog::level::info, "{}",
      DescribeStraggler(change, NameOfRank(change.rank, words.host.data()), words.own.data()));
}

std::string DescribeStraggler(const StragglerTransition& change, const std::string& rank,
                              const std::string& own) {
  if (!change.begins) {
    return fmt::format("{} is no longer slower than the other ranks; it was for {} steps", rank,
                       change.steps);
  }
  return fmt::format(
      "{} has been {:.0f} % slower than the median of the ranks for {} steps: in each it is busy "
      "for {:.1f} ms, they for {:.1f} ({})",
      rank, (change.seconds / change.median - 1) * 100, change.steps, change.seconds * 1e3,
      change.median * 1e3, own);
}

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
  if (blocks_ < static_cast<std::int64_t>(kBlocks)) return std::nullopt;

  const Block window = Window();
  std::optional<AllReduceWaitChange> change;
  const bool is_long = ended.waited / kBlock - best_ >= kLonger * ended.steps / kBlock;
  if (best_ >= 0 && long_.Add(is_long, blocks_)) {
    change = {.begins = long_.is_slow(),
              .steps = long_.count() * kBlock,
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

double MedianNow(std::span<const MeasuredLink> links) {
  std::vector<double> rates;
  for (const MeasuredLink& link : links) rates.push_back(link.now);
  return MedianOf(rates);
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

std::optional<Outlier> SpikeDetector::Add(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  std::optional<Outlier> outlier;
  if (added_ >= kWindow) {
    constexpr auto kCount = static_cast<double>(kWindow);
    double sum = 0;
    for (const double other : window_) sum += other;
    const double mean = sum / kCount;
    double squares = 0;
    for (const double other : window_) squares += (other - mean) * (other - mean);
    const double deviation = std::sqrt(squares / kCount);
    const double above = value - mean;
    if (above > kDeviations * deviation && above > share_ * std::abs(mean)) {
      outlier = {mean, deviation};
    }
  }
  window_[added_++ % kWindow] = value;
  return outlier;
}

}  // namespace trainer
