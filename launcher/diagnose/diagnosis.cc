// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "launcher/diagnose/recorded_collectives.h"
#include "support/number.h"
#include "support/quoting.h"

namespace launcher {
namespace {

// "AllReduce 17 times (others 18), AllGather 1 time (others 0)".
std::string DifferenceText(const std::vector<CollectiveCount>& own,
                           const std::vector<CollectiveCount>& others) {
  std::map<std::string, std::pair<long long, long long>> counts;
  for (const CollectiveCount& one : own) counts[one.name].first = one.count;
  for (const CollectiveCount& one : others) counts[one.name].second = one.count;
  std::string text;
  for (const auto& [name, count] : counts) {
    if (count.first == count.second) continue;
    text += fmt::format("{}{} {} (others {})", text.empty() ? "" : ", ", name,
                        support::Counted(count.first, "time"), count.second);
  }
  return text;
}

long long TotalOf(const std::vector<CollectiveCount>& counts) {
  long long total = 0;
  for (const CollectiveCount& one : counts) total += one.count;
  return total;
}

// What ranks have launched in a communicator of NCCL otherwise than most of its ranks; of as many
// on both sides those that have launched more are the others.
std::map<int, std::string> LaunchedOtherwise(const HangingJob& job) {
  struct Group {
    std::vector<CollectiveCount> counts;
    std::vector<int> ranks;
  };
  std::map<std::string, std::vector<Group>> communicators;
  for (const NodeFacts& node : job.nodes) {
    for (const RankFacts& rank : node.ranks) {
      for (const CommunicatorFacts& communicator : rank.communicators) {
        std::vector<Group>& groups = communicators[communicator.name];
        auto group = std::ranges::find(groups, communicator.launched, &Group::counts);
        if (group == groups.end()) group = groups.insert(group, {communicator.launched, {}});
        group->ranks.push_back(rank.rank);
      }
    }
  }
  std::map<int, std::string> odd;
  for (const auto& [name, groups] : communicators) {
    if (groups.size() < 2) continue;
    const auto others = std::ranges::max_element(groups, {}, [](const Group& group) {
      return std::pair(group.ranks.size(), TotalOf(group.counts));
    });
    for (const Group& group : groups) {
      if (&group == &*others) continue;
      for (const int rank : group.ranks)
        odd.emplace(rank, "has launched " + DifferenceText(group.counts, others->counts));
    }
  }
  return odd;
}

int WorldOf(const HangingJob& job) {
  int world = support::Size(job.hosts);
  for (const NodeFacts& node : job.nodes) {
    for (const RankFacts& rank : node.ranks) world = std::max(world, rank.world);
  }
  return world;
}

std::vector<Finding> FindingsOf(const HangingJob& job) {
  std::map<int, Finding> found;
  std::set<std::string> answered;
  for (const NodeFacts& node : job.nodes) {
    answered.insert(node.host);
    for (const RankFacts& rank : node.ranks) {
      answered.insert(rank.host);
      found.emplace(rank.rank, FindingOf(rank));
    }
  }
  // PyTorch's record says more than NCCL's counts.
  const RecordedVerdict recorded = CompareRecords(job.nodes);
  for (const auto& [rank, text] :
       recorded.otherwise.empty() ? LaunchedOtherwise(job) : recorded.otherwise)
    found.at(rank).launched = text;
  for (auto& [rank, finding] : found) finding.recorded = recorded.common;
  std::vector<Finding> findings;
  for (int rank = 0; rank < WorldOf(job); ++rank) {
    if (const auto seen = found.find(rank); seen != found.end()) {
      findings.push_back(std::move(seen->second));
      continue;
    }
    Finding& missing = findings.emplace_back();
    const auto set = [&missing](HangCause kind, std::string text) {
      missing.kind = kind;
      missing.text = std::move(text);
    };
    missing.rank = rank;
    if (rank < support::Size(job.hosts)) missing.host = job.hosts[static_cast<std::size_t>(rank)];
    const auto end = job.ended.find(rank);
    if (end != job.ended.end()) {
      set(HangCause::kEnded, fmt::format("has ended with exit code {}", end->second));
    } else if (std::ranges::find(job.silent_nodes, missing.host) != job.silent_nodes.end()) {
      set(HangCause::kSilentNode, "its node does not answer");
    } else if (answered.contains(missing.host)) {
      set(HangCause::kMissing, "no process of it was found there");
    } else {
      missing.was_seen = false;
    }
  }
  return findings;
}

using Findings = std::vector<const Finding*>;

// "3, 5 and 7"; long lists are cut.
std::string NumbersOf(const Findings& findings) {
  constexpr std::size_t kNamed = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(findings.size(), kNamed); ++i) {
    const bool is_last = i + 1 == findings.size();
    text += (i == 0 ? "" : is_last ? " and " : ", ") + std::to_string(findings[i]->rank);
  }
  if (findings.size() > kNamed) text += fmt::format(" and {} more", findings.size() - kNamed);
  return text;
}

std::string NameOfRank(const Finding& finding) {
  std::string where = finding.host.empty() ? "" : support::WithoutControls(finding.host);
  if (finding.pid != 0) where += fmt::format("{}pid {}", where.empty() ? "" : ", ", finding.pid);
  return fmt::format("rank {}{}", finding.rank, where.empty() ? "" : " (" + where + ")");
}

// What all of them have in common by this field; "" where they differ, or it is not known.
std::string CommonOf(const Findings& findings, std::string Finding::*field) {
  if (findings.empty()) return "";
  const std::string& first = findings.front()->*field;
  const bool is_common =
      std::ranges::all_of(findings, [&](const Finding* other) { return other->*field == first; });
  return is_common ? first : "";
}

// "7 other ranks wait in all_reduce (train.py:50)".
std::string OthersText(const Findings& waiting, const char* verb = "wait") {
  if (waiting.empty()) return "";
  const std::string collective = CommonOf(waiting, &Finding::collective);
  const std::string place = CommonOf(waiting, &Finding::place);
  return fmt::format("; {} {}{}{}",
                     support::Counted(static_cast<long long>(waiting.size()), "other rank"), verb,
                     waiting.size() == 1 ? "s" : "",
                     !collective.empty() ? " in " + collective
                     : !place.empty()    ? " (" + place + ")"
                                         : "");
}

std::string UnseenText(const Findings& unseen) {
  if (unseen.empty()) return "";
  const bool is_one = unseen.size() == 1;
  const std::string host = support::WithoutControls(unseen.front()->host);
  return fmt::format("; rank{} {} not looked at{}", is_one ? "" : "s",
                     NumbersOf(unseen) + (is_one ? " was" : " were"),
                     host.empty() ? "" : ": ask on " + host + " too");
}

// Whether a cause leaves no doubt where all others wait.  One that the rank may come out of by what
// another rank does, or that was in order, leaves none only where these are known to wait in a
// collective: a rank that receives may do so from anywhere.
bool IsDefinite(HangCause cause, const Findings& waiting) {
  if (cause > HangCause::kAsleep) return false;
  return cause == HangCause::kUninterruptible || cause == HangCause::kOpens ||
         std::ranges::none_of(waiting,
                              [](const Finding* finding) { return finding->collective.empty(); });
}

Diagnosis Blame(const Findings& blamed, HangCause cause, const std::string& text, bool is_sure,
                const std::string& rest) {
  Diagnosis diagnosis;
  diagnosis.cause = cause;
  for (const Finding* finding : blamed) diagnosis.ranks.push_back(finding->rank);
  diagnosis.host = blamed.front()->host;
  diagnosis.pid = blamed.front()->pid;
  diagnosis.is_sure = is_sure;
  const Findings more(blamed.begin() + 1, blamed.end());
  const std::string also = more.empty() ? ""
                                        : fmt::format("; likewise rank{} {}",
                                                      more.size() == 1 ? "" : "s", NumbersOf(more));
  diagnosis.line =
      fmt::format("{}{}: {}{}{}", is_sure ? "" : "perhaps ", NameOfRank(*blamed.front()),
                  support::WithoutControls(text), also, rest);
  return diagnosis;
}

Diagnosis BlameNobody(HangCause cause, std::string line) {
  Diagnosis diagnosis;
  diagnosis.cause = cause;
  diagnosis.line = std::move(line);
  return diagnosis;
}

// All wait, or all compute: who does so elsewhere than most, or has launched other collectives;
// else the network.
Diagnosis DiagnoseAlike(const Findings& ranks, bool do_wait, const std::string& rest) {
  std::map<std::string, Findings> groups;
  Findings odd;
  for (const Finding* finding : ranks) {
    groups[finding->place].push_back(finding);
    if (!finding->launched.empty()) odd.push_back(finding);
  }
  const auto largest =
      std::ranges::max_element(groups, {}, [](const auto& group) { return group.second.size(); });
  const std::size_t count = largest->second.size();
  const bool has_majority = 2 * count > ranks.size() && count > 1;
  const char* const verb = do_wait ? "wait" : "compute";
  if (!odd.empty() && (groups.size() == 1 || !has_majority)) {
    Findings others;
    for (const Finding* finding : ranks) {
      if (finding->launched.empty()) others.push_back(finding);
    }
    return Blame(odd, HangCause::kOutlier, odd.front()->launched, false,
                 OthersText(others, verb) + rest);
  }
  const std::string all = ranks.size() == 1 ? fmt::format("rank {} {}s", ranks[0]->rank, verb)
                                            : fmt::format("all {} ranks {}", ranks.size(), verb);
  if (groups.size() == 1) {
    const std::string& collective = ranks.front()->collective;
    const std::string recorded = CommonOf(ranks, &Finding::recorded);
    if (!collective.empty() || !recorded.empty()) {
      const std::string both = collective.empty() || recorded.empty() ? "" : ", ";
      return BlameNobody(HangCause::kNetwork,
                         fmt::format("{} in {}: perhaps the network{}{}", all,
                                     support::WithoutControls(collective + both + recorded),
                                     recorded.empty() ? ", or sizes that differ" : "", rest));
    }
    return BlameNobody(
        HangCause::kAlike,
        fmt::format(
            "{}{}: no single rank stands out; perhaps the network{}", all,
            largest->first.empty() ? "" : " (" + support::WithoutControls(largest->first) + ")",
            rest));
  }
  if (!has_majority) {
    return BlameNobody(
        HangCause::kUnknown,
        fmt::format("{}, but in {} different places (-v shows them): perhaps they call "
                    "collectives in different orders{}",
                    all, groups.size(), rest));
  }
  Findings outliers;
  for (const Finding* finding : ranks) {
    if (finding->place != largest->first) outliers.push_back(finding);
  }
  // The odd one of those that were seen in a function first.
  std::ranges::stable_sort(outliers, {},
                           [](const Finding* finding) { return !finding->collective.empty(); });
  const Finding& first = *outliers.front();
  const std::string place = first.place.empty() ? "elsewhere" : first.place;
  return Blame(outliers, HangCause::kOutlier,
               fmt::format("{}s in {}{}{}{}", verb, place, first.worker,
                           first.launched.empty() ? "" : " and ", first.launched),
               false, OthersText(largest->second, verb) + rest);
}

}  // namespace

Diagnosis Diagnose(const HangingJob& job) {
  const std::vector<Finding> findings = FindingsOf(job);
  Findings waiting, others, ended, unseen;
  for (const Finding& finding : findings) {
    const bool has_ended = finding.kind == HangCause::kEnded;
    (!finding.was_seen ? unseen
     : !finding.kind   ? waiting
     : has_ended       ? ended
                       : others)
        .push_back(&finding);
  }
  std::string rest = UnseenText(unseen);
  // MPI and NCCL may also wait with a busy CPU.
  if (!findings.empty() && std::ranges::none_of(findings, &Finding::is_still))
    rest += "; all ranks ran between two looks: perhaps nothing hangs";
  // Where most have ended, those that have not are to be looked at.
  if (2 * ended.size() >= findings.size()) {
    if (!ended.empty())
      rest = fmt::format("; {} of {} ranks have ended", ended.size(), findings.size()) + rest;
  } else {
    others.insert(others.end(), ended.begin(), ended.end());
    std::ranges::sort(others, {}, &Finding::rank);
  }
  if (waiting.empty() && others.empty()) {
    return BlameNobody(HangCause::kUnknown,
                       findings.empty() ? "no rank was found" : "all ranks have ended" + rest);
  }
  if (others.empty()) return DiagnoseAlike(waiting, /*do_wait=*/true, rest);
  const HangCause cause = *(*std::ranges::min_element(others, {}, [](const Finding* finding) {
                             return *finding->kind;
                           }))->kind;
  Findings blamed, busy;
  for (const Finding* finding : others) (finding->kind == cause ? blamed : busy).push_back(finding);
  const bool is_of_all = waiting.empty() && busy.empty() && blamed.size() > 1;
  // As MPI and NCCL wait: where they do is more than that they compute.
  const bool has_places = std::ranges::any_of(blamed, [&](const Finding* finding) {
    return finding->place != blamed.front()->place || !finding->launched.empty();
  });
  if (is_of_all && has_places && cause == HangCause::kComputes)
    return DiagnoseAlike(blamed, /*do_wait=*/false, rest);
  if (is_of_all) {
    const std::string alike = cause == HangCause::kStopped
                                  ? "are stopped"
                                  : fmt::format("are in the same state ({})", NameOf(cause));
    return BlameNobody(HangCause::kAlike,
                       fmt::format("all {} ranks {}: no single rank is to blame; rank {}: {}{}",
                                   blamed.size(), alike, blamed.front()->rank,
                                   support::WithoutControls(blamed.front()->text), rest));
  }
  // Who is stopped is so whatever the others do; who has run meanwhile may go on by itself, as one
  // that sleeps again and again.
  const bool is_direct = std::ranges::all_of(
      blamed, [](const Finding* finding) { return finding->is_direct && finding->is_still; });
  const bool is_sure = is_direct && (cause == HangCause::kStopped ||
                                     (IsDefinite(cause, waiting) && blamed.size() == 1 &&
                                      busy.empty() && unseen.empty() && !waiting.empty()));
  if (!busy.empty()) {
    rest = fmt::format("; {} {} something else (-v)",
                       support::Counted(static_cast<long long>(busy.size()), "other rank"),
                       busy.size() == 1 ? "does" : "do") +
           rest;
  }
  return Blame(blamed, cause, blamed.front()->text, is_sure, OthersText(waiting) + rest);
}

std::string RankTable(const HangingJob& job) {
  std::string text = fmt::format("{:>6} {:<16} {:>8} {:<5} {:>5} {}\n", "rank", "host", "pid",
                                 "state", "CPUs", "what");
  std::map<int, const RankFacts*> ranks;
  for (const NodeFacts& node : job.nodes) {
    for (const RankFacts& rank : node.ranks) ranks.emplace(rank.rank, &rank);
  }
  for (const Finding& finding : FindingsOf(job)) {
    const auto facts = ranks.find(finding.rank);
    const ProcessFacts* const focus = facts == ranks.end() ? nullptr : &FocusOf(*facts->second);
    std::string what = !finding.was_seen ? "not looked at" : finding.text;
    if (focus != nullptr && what.empty()) {
      what = finding.collective.empty() ? "waits: " + CallText(*focus) + finding.worker
                                        : "waits in " + finding.collective;
    }
    text += fmt::format(
        "{:>6} {:<16} {:>8} {:<5} {:>5} {}\n", finding.rank, support::WithoutControls(finding.host),
        finding.pid == 0 ? "-" : std::to_string(finding.pid), focus == nullptr ? '-' : focus->state,
        focus == nullptr ? "-" : fmt::format("{:.1f}", focus->cpus),
        support::WithoutControls(what));
  }
  for (const auto& [rank, facts] : ranks) {
    for (const RecordedGroup& group : facts->recorded) {
      if (group.collectives.empty()) continue;
      text += fmt::format("rank {}: {}\n", rank,
                          support::WithoutControls(RecordText(group, group.collectives.back())));
    }
  }
  for (const NodeFacts& node : job.nodes) {
    for (const std::string& gpu : node.gpus) {
      text += fmt::format("{}: GPU {}\n", support::WithoutControls(node.host),
                          support::WithoutControls(gpu));
    }
    for (const std::string& note : node.notes) {
      text += fmt::format("{}: {}\n", support::WithoutControls(node.host),
                          support::WithoutControls(note));
    }
  }
  return text;
}

}  // namespace launcher
