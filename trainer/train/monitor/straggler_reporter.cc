// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/monitor/straggler_reporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "support/counted.h"
#include "trainer/comm/rank_consistency.h"

namespace trainer {
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
