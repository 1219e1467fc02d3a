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

}  // namespace

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
  if (sums_.empty()) return 0;
  const auto middle = sums_.begin() + static_cast<std::ptrdiff_t>((sums_.size() - 1) / 2);
  std::nth_element(sums_.begin(), middle, sums_.end());
  return *middle;
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
  Rank& judged = ranks_[index];
  if (judged.sum >= (1 + kSlower) * (1 - kRounding) * median) {
    if (judged.slow_blocks == 0 && !judged.is_reported) judged.begun = blocks_ - 1;
    ++judged.slow_blocks;
    judged.quick_blocks = 0;
    judged.slow_at = blocks_;
  } else {
    judged.slow_blocks = 0;
    ++judged.quick_blocks;
  }
  const bool begins = !judged.is_reported && judged.slow_blocks == kBlocks;
  const bool ends = judged.is_reported && judged.quick_blocks == kBlocks;
  if (!begins && !ends) return;
  judged.is_reported = begins;
  StragglerTransition change = {
      .rank = rank, .begins = begins, .steps = (judged.slow_at - judged.begun) * kBlock};
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

}  // namespace trainer
