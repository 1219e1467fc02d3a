// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/monitor/hang_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

#include "support/number.h"

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

// "rank 3 on n2 has waited 130 s for its data (reading FILE)".
std::string WaitOf(std::span<const RankState> said, double seconds,
                   const std::vector<std::string>& hosts) {
  std::vector<int> readers;
  std::string file;
  for (const RankState& state : said) {
    if (!state.reading) continue;
    readers.push_back(state.rank);
    if (file.empty()) file = state.file;
  }
  return fmt::format("{} {} waited {:.0f} s for {} data{}", Names(readers, hosts),
                     Verb(readers, "has", "have"), seconds, Verb(readers, "its", "their"),
                     file.empty() ? "" : " (reading " + file + ")");
}

// Those who are not heard of are to blame before those who are slow, and these before all.
std::string Cause(const RankState& own, std::span<const RankState> said,
                  const std::vector<std::string>& hosts) {
  const std::vector<int> silent = SilentRanks(said, hosts.size());
  if (!silent.empty()) {
    return fmt::format("{} {} not answer: stopped, or the node is out of reach",
                       Names(silent, hosts), Verb(silent, "does", "do"));
  }
  std::vector<int> slow;
  bool all_read = true;
  for (const RankState& state : said) {
    if (state.waiting) continue;
    slow.push_back(state.rank);
    all_read = all_read && state.reading;
  }
  if (!slow.empty() && all_read) {
    return WaitOf(said, own.seconds, hosts) + ": the file system hangs there";
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
  return fmt::format("{} {} {} {:d} {:.3f} {:d} {}\n", state.rank, static_cast<int>(state.activity),
                     state.step, state.waiting, state.seconds, state.reading, state.file);
}

bool FromText(const std::string& text, RankState& state) {
  std::istringstream in(text);
  int activity = -1;
  if (!(in >> state.rank >> activity >> state.step >> state.waiting >> state.seconds >>
        state.reading)) {
    return false;
  }
  if (activity < 0 || activity >= static_cast<int>(kActivities)) return false;
  state.activity = static_cast<Activity>(activity);
  in.ignore();
  state.file.clear();
  std::getline(in, state.file);
  return true;
}

std::vector<RankState> StillResponding(std::span<const RankState> said, double bound) {
  std::vector<RankState> received;
  std::ranges::copy_if(said, std::back_inserter(received), [&](const RankState& state) {
    return !state.reading || state.unchanged_seconds < bound;
  });
  return received;
}

std::vector<int> SilentRanks(std::span<const RankState> said, std::size_t ranks) {
  std::vector<bool> received(ranks);
  for (const RankState& state : said) received[static_cast<std::size_t>(state.rank)] = true;
  std::vector<int> silent;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (!received[rank]) silent.push_back(static_cast<int>(rank));
  }
  return silent;
}

bool IsInputWait(std::span<const RankState> received, std::size_t ranks) {
  const auto reads = [](const RankState& state) { return state.reading; };
  const auto is_excused = [](const RankState& state) { return state.waiting || state.reading; };
  return SilentRanks(received, ranks).empty() && std::ranges::all_of(received, is_excused) &&
         std::ranges::any_of(received, reads);
}

std::string InputWaitReport(const RankState& own, std::span<const RankState> received,
                            const std::vector<std::string>& hosts) {
  const auto readers = std::ranges::count_if(received, &RankState::reading);
  std::string others;
  if (static_cast<std::size_t>(readers) < received.size()) {
    others = readers == 1 ? "; the others wait for it" : "; the others wait for them";
  }
  return WaitOf(received, own.seconds, hosts) + others;
}

std::string DescribeState(const RankState& state) {
  const char* const how = state.waiting   ? "waiting for other ranks"
                          : state.reading ? "waiting for its data"
                                          : "at work of its own";
  const std::string text = Doing(state) + ", " + how;
  constexpr double kLoggedSeconds = 2;  // the clock of a healthy rank may be behind by one
  return state.seconds < kLoggedSeconds
             ? text
             : fmt::format("{}, no progress for {:.0f} s", text, state.seconds);
}

std::string DescribeOddOne(std::span<const RankState> said, const std::vector<std::string>& briefs,
                           const std::vector<std::string>& hosts) {
  std::map<std::string, int> counts;
  for (const std::string& brief : briefs) {
    if (!brief.empty()) ++counts[brief];
  }
  if (counts.empty()) return "";
  const auto& [usual, count] =
      *std::ranges::max_element(counts, {}, [](const auto& counted) { return counted.second; });
  const bool has_majority = 2 * count > static_cast<int>(briefs.size());
  for (const RankState& state : said) {
    const std::string& brief = briefs[static_cast<std::size_t>(state.rank)];
    const bool is_odd = !state.waiting || (has_majority && brief != usual);
    if (brief.empty() || !is_odd) continue;
    const std::string others = has_majority && brief != usual ? ", most others in " + usual : "";
    return "; " + Names({state.rank}, hosts) + " is in " + brief + others;
  }
  return "";
}

std::string HangReport(const RankState& own, std::span<const RankState> said,
                       const std::vector<std::string>& hosts) {
  const bool knows_others = std::any_of(
      said.begin(), said.end(), [&](const RankState& state) { return state.rank == own.rank; });
  return fmt::format("no progress for {:.0f} s {}: {}", own.seconds, Doing(own),
                     knows_others ? Cause(own, said, hosts)
                                  : "another rank has said why, or --model_dir cannot be written");
}

}  // namespace trainer
