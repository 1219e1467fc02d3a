// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/recorded_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace launcher {
namespace {

struct RecordOfRank {
  int rank;
  const RecordedGroup* group;  // with one collective or more

  const RecordedCollective& last() const { return group->collectives.back(); }
  const RecordedCollective* Find(long long number) const {
    const auto found = std::ranges::find(group->collectives, number, &RecordedCollective::number);
    return found == group->collectives.end() ? nullptr : &*found;
  }
};
using RecordsOfGroup = std::vector<RecordOfRank>;
using GroupName = std::pair<std::string, std::string>;

std::map<GroupName, RecordsOfGroup> RecordsByGroup(const std::vector<NodeFacts>& nodes) {
  std::map<GroupName, RecordsOfGroup> records;
  for (const NodeFacts& node : nodes) {
    for (const RankFacts& rank : node.ranks) {
      for (const RecordedGroup& group : rank.recorded) {
        if (!group.collectives.empty())
          records[{group.name, group.description}].push_back({rank.rank, &group});
      }
    }
  }
  return records;
}

std::string NameOfGroup(const RecordedGroup& group) {
  const bool has_description = !group.description.empty() && group.description != "undefined";
  return "process group " + group.name + (has_description ? " (" + group.description + ")" : "");
}

// What all ranks of a group must have alike.  In some collectives each rank has sizes of its own.
using Signature = std::tuple<std::string, std::string, std::string>;
Signature SignatureOf(const RecordedCollective& one) {
  const bool has_own_sizes = one.name.find("all_to_all") != std::string::npos ||
                             one.name.find("scatter") == 0 || one.name.find("gather") == 0;
  return {one.name, has_own_sizes ? "" : one.sizes, has_own_sizes ? "" : one.types};
}

std::string SignatureText(const RecordedCollective& one, bool with_sizes) {
  return with_sizes ? one.name + " of " + one.sizes + " " + one.types : one.name;
}

// The first collective that all have on record, and some otherwise than most.
void FindMismatch(const RecordsOfGroup& records, std::map<int, std::string>* otherwise) {
  for (const RecordedCollective& one : records.front().group->collectives) {
    std::map<Signature, int> counts;
    bool is_over = true;
    for (const RecordOfRank& record : records) {
      const RecordedCollective* const same = record.Find(one.number);
      if (same == nullptr) break;
      ++counts[SignatureOf(*same)];
      is_over = is_over && same->state == "completed";
    }
    int seen = 0;
    for (const auto& [signature, count] : counts) seen += count;
    if (counts.size() < 2 || is_over || seen != static_cast<int>(records.size())) continue;
    // Of as many those that the first rank is one of.
    const Signature first = SignatureOf(one);
    const Signature majority = std::ranges::max_element(counts, {}, [&](const auto& entry) {
                                 return std::pair(entry.second, entry.first == first);
                               })->first;
    const RecordedCollective* const usual =
        std::ranges::find_if(records, [&](const auto& record) {
          return SignatureOf(*record.Find(one.number)) == majority;
        })->Find(one.number);
    for (const RecordOfRank& record : records) {
      const RecordedCollective& own = *record.Find(one.number);
      if (SignatureOf(own) == majority) continue;
      const bool with_sizes = own.name == usual->name;
      otherwise->emplace(
          record.rank,
          fmt::format("has {} as number {} of {} (others {})", SignatureText(own, with_sizes),
                      one.number, NameOfGroup(*record.group), SignatureText(*usual, with_sizes)));
    }
    return;
  }
}

// "all_reduce number 1235", of one that `records` have on record; "collective number 1235".
std::string NameOf(const RecordsOfGroup& records, long long number) {
  std::string name = "collective";
  for (const RecordOfRank& record : records) {
    if (const RecordedCollective* const found = record.Find(number)) name = found->name;
  }
  return fmt::format("{} number {}", name, number);
}

// Those whose last collective has another number than that of most; `ahead` are those that have
// called one which others of the group have not, and wait for these.
void FindBehind(const RecordsOfGroup& records, std::map<int, std::string>* otherwise,
                std::set<int>* ahead) {
  std::map<long long, int> counts;
  for (const RecordOfRank& record : records) ++counts[record.last().number];
  const long long usual_number = std::ranges::max_element(counts, {}, [](const auto& entry) {
                                   return std::pair(entry.second, entry.first);
                                 })->first;
  for (const RecordOfRank& record : records) {
    const long long own = record.last().number;
    if (own > counts.begin()->first) ahead->insert(record.rank);
    if (own == usual_number) continue;
    const std::string where = NameOfGroup(*record.group);
    otherwise->emplace(record.rank,
                       own > usual_number
                           ? fmt::format("has started {} of {}, which the others have not",
                                         NameOf(records, usual_number + 1), where)
                       : usual_number - own == 1
                           ? fmt::format("has not started {} of {}, which the others have",
                                         NameOf(records, usual_number), where)
                           : fmt::format("has not started {} of {}, {} behind the others",
                                         NameOf(records, own + 1), where, usual_number - own));
  }
}

std::string NumberText(const RecordedGroup& group, const RecordedCollective& collective) {
  return fmt::format("{} number {} of {}", collective.name, collective.number, NameOfGroup(group));
}

}  // namespace

RecordedVerdict CompareRecords(const std::vector<NodeFacts>& nodes) {
  RecordedVerdict verdict;
  std::size_t ranks = 0;
  for (const NodeFacts& node : nodes) ranks += node.ranks.size();
  std::map<int, std::string> behind;
  std::set<int> ahead;
  for (const auto& [name, records] : RecordsByGroup(nodes)) {
    if (records.size() < 2) continue;
    FindMismatch(records, &verdict.otherwise);
    FindBehind(records, &behind, &ahead);
    const RecordedCollective& first = records.front().last();
    const bool is_common =
        records.size() == ranks && std::ranges::all_of(records, [&](const RecordOfRank& record) {
          return record.last().number == first.number && record.last().state != "completed" &&
                 SignatureOf(record.last()) == SignatureOf(first);
        });
    if (is_common && verdict.common.empty())
      verdict.common = NumberText(*records.front().group, first);
  }
  // Who runs one collective while others run the next of it is no cause of its own.
  if (verdict.otherwise.empty()) {
    const bool is_any_first =
        std::ranges::any_of(behind, [&](const auto& one) { return !ahead.contains(one.first); });
    if (is_any_first)
      std::erase_if(behind, [&](const auto& one) { return ahead.contains(one.first); });
    verdict.otherwise = std::move(behind);
  }
  if (!verdict.otherwise.empty()) verdict.common.clear();
  return verdict;
}

std::string RecordText(const RecordedGroup& group, const RecordedCollective& collective) {
  return fmt::format("{}, {}, {} {}{}", NumberText(group, collective), collective.state,
                     collective.sizes, collective.types,
                     collective.place.empty() ? "" : ", called in " + collective.place);
}

}  // namespace launcher
