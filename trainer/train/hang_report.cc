// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/hang_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "support/counted.h"

namespace trainer {
namespace {

std::string Doing(const RankState& state) {
  switch (state.activity) {
    case Activity::kSetUp:
      return "before the first step";
    case Activity::kTraining:
      return fmt::format("in training, step {}", state.step);
    case Activity::kCheckpoint:
      return fmt::format("with the checkpoint of step {}", state.step);
    case Activity::kPause:
      return fmt::format("in a pause, after step {}", state.step);
    case Activity::kEvaluation:
      break;
  }
  return fmt::format("in evaluation, after step {}", state.step);
}

// "rank 2 on n2, rank 3 on n2"; long lists are cut.
std::string Names(const std::vector<int>& ranks, const std::vector<std::string>& hosts) {
  constexpr std::size_t kNamed = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(ranks.size(), kNamed); ++i) {
    names += fmt::format("{}rank {}", i == 0 ? "" : ", ", ranks[i]);
    const std::string& host = hosts[static_cast<std::size_t>(ranks[i])];
    if (!host.empty()) names += " on " + host;
  }
  if (ranks.size() > kNamed) names += fmt::format(" and {} more", ranks.size() - kNamed);
  return names;
}

const char* Verb(const std::vector<int>& ranks, const char* one, const char* many) {
  return ranks.size() == 1 ? one : many;
}

// Those who are not heard of are to blame before those who are slow, and these before all.
std::string Cause(std::span<const RankState> said, const std::vector<std::string>& hosts) {
  std::vector<bool> heard(hosts.size());
  std::vector<int> slow;
  for (const RankState& state : said) {
    heard[static_cast<std::size_t>(state.rank)] = true;
    if (!state.waiting) slow.push_back(state.rank);
  }
  std::vector<int> silent;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (!heard[rank]) silent.push_back(static_cast<int>(rank));
  }
  if (!silent.empty()) {
    return fmt::format("{} {} not answer: stopped, or the node is out of reach",
                       Names(silent, hosts), Verb(silent, "does", "do"));
  }
  if (!slow.empty()) {
    return fmt::format("{} {} still at work: input, computation or file system hang there",
                       Names(slow, hosts), Verb(slow, "is", "are"));
  }
  return fmt::format("all {} wait for each other: the network between their nodes fails",
                     support::Counted(hosts.size(), "rank"));
}

}  // namespace

std::string ToText(const RankState& state) {
  return fmt::format("{} {} {} {:d} {:.1f}\n", state.rank, static_cast<int>(state.activity),
                     state.step, state.waiting, state.seconds);
}

bool FromText(const std::string& text, RankState& state) {
  std::istringstream in(text);
  int activity = -1;
  if (!(in >> state.rank >> activity >> state.step >> state.waiting >> state.seconds)) return false;
  if (activity < 0 || activity >= static_cast<int>(kActivities)) return false;
  state.activity = static_cast<Activity>(activity);
  return true;
}

std::string HangReport(const RankState& own, std::span<const RankState> said,
                       const std::vector<std::string>& hosts) {
  const bool knows_others = std::any_of(
      said.begin(), said.end(), [&](const RankState& state) { return state.rank == own.rank; });
  return fmt::format("no progress for {:.0f} s {}: {}", own.seconds, Doing(own),
                     knows_others ? Cause(said, hosts)
                                  : "another rank has said why, or --model_dir cannot be written");
}

}  // namespace trainer
