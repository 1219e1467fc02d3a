// SPDX-License-Identifier: Apache-2.0

#include "rankfile/hostfile.h"

#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "rankfile/host_name.h"
#include "rankfile/hostlist.h"  // kMaxHosts
#include "rankfile/scanner.h"

namespace rankfile {

namespace {

constexpr std::string_view kHostfileExample = "gpu025 slots=4";

class HostfileParser {
 public:
  HostfileParser(std::string_view text, std::string_view source) : scanner_(text, source) {}

  std::vector<HostfileEntry> Parse();

 private:
  HostfileEntry ReadLine();
  // One "key=N" behind the host.
  void ReadOption(HostfileEntry& entry);
  void Add(HostfileEntry entry, Position where);

  Scanner scanner_;
  std::vector<HostfileEntry> entries_;
  std::unordered_map<std::string, std::size_t> index_;  // of entries_, by host
  HostSpellings spellings_;
};

std::vector<HostfileEntry> HostfileParser::Parse() {
  scanner_.SkipToEntry();
  if (scanner_.AtEnd()) {
    scanner_.Fail("the hostfile names no host; write a line such as " +
                  std::string(kHostfileExample));
  }
  while (!scanner_.AtEnd()) {
    const Position start = scanner_.Here();
    Add(ReadLine(), start);
    scanner_.SkipToEntry();
  }
  return std::move(entries_);
}

HostfileEntry HostfileParser::ReadLine() {
  HostfileEntry entry;
  if (LooksLikeIpv6(scanner_.Word())) scanner_.Fail(kNoIpv6);
  entry.host = ReadHostName(scanner_, kHostfileExample);
  if (scanner_.Eat(':')) entry.slots = scanner_.ReadNumber("slots", 1, kMaxRanks);
  while (!scanner_.AtEntryEnd()) ReadOption(entry);
  return entry;
}

void HostfileParser::ReadOption(HostfileEntry& entry) {
  const Position start = scanner_.Here();
  const std::string_view key =
      scanner_.TakeWhile([](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '-'; });
  std::optional<int>* value = nullptr;
  if (key == "slots") value = &entry.slots;
  if (key == "max_slots" || key == "max-slots") value = &entry.max_slots;
  if (value == nullptr) {
    scanner_.FailAt(start, "after the host only slots=N and max_slots=N are understood, as in " +
                               std::string(kHostfileExample));
  }
  if (value->has_value()) scanner_.FailAt(start, "the line gives this number twice");
  scanner_.SkipWhitespace();
  scanner_.Expect('=', kHostfileExample);
  scanner_.SkipWhitespace();
  *value = scanner_.ReadNumber(key, 1, kMaxRanks);
}

void HostfileParser::Add(HostfileEntry entry, Position where) {
  if (const std::string* other = spellings_.Add(entry.host)) {
    scanner_.FailAt(where,
                    entry.host + " and " + *other + " are one host spelled in two ways; use one");
  }
  const auto [known, is_new] = index_.try_emplace(entry.host, entries_.size());
  if (is_new) {
    if (entries_.size() == kMaxHosts) {
      scanner_.FailAt(where, "more than " + std::to_string(kMaxHosts) + " hosts");
    }
    entries_.push_back(std::move(entry));
  } else {
    HostfileEntry& first = entries_[known->second];
    first.slots = first.slots.value_or(1) + entry.slots.value_or(1);
    if (entry.max_slots) first.max_slots = entry.max_slots;
  }
  const HostfileEntry& now = entries_[known->second];
  const int slots = now.slots.value_or(1);
  if (slots > kMaxRanks) {
    scanner_.FailAt(where, "the lines of " + now.host + " add up to more than " +
                               std::to_string(kMaxRanks) + " slots");
  }
  if (now.max_slots && *now.max_slots < slots) {
    scanner_.FailAt(where, now.host + " has " + std::to_string(slots) +
                               " slots, more than max_slots=" + std::to_string(*now.max_slots));
  }
}

}  // namespace

std::vector<HostfileEntry> ParseHostfile(std::string_view text, std::string_view source) {
  return HostfileParser(text, source).Parse();
}

std::string FormatHostfile(const std::vector<HostfileEntry>& entries) {
  std::string text;
  for (const HostfileEntry& entry : entries) {
    text += entry.host;
    if (entry.slots) text += " slots=" + std::to_string(*entry.slots);
    if (entry.max_slots) text += " max_slots=" + std::to_string(*entry.max_slots);
    text += '\n';
  }
  return text;
}

Placement PlaceOnHosts(const std::vector<HostfileEntry>& entries) {
  long long slots = 0;
  for (const HostfileEntry& entry : entries) slots += entry.slots.value_or(1);
  if (slots > kMaxRanks) {
    throw std::invalid_argument("the hosts have " + std::to_string(slots) +
                                " slots together, more than " + std::to_string(kMaxRanks));
  }
  Placement placement;
  for (const HostfileEntry& entry : entries) {
    for (int i = 0; i < entry.slots.value_or(1); ++i) {
      placement.ranks.push_back({.host = entry.host, .cores = {}});
    }
  }
  return placement;
}

std::vector<HostfileEntry> HostfileOf(const Placement& placement) {
  std::vector<HostfileEntry> entries;
  for (const HostRanks& host : RanksByHost(placement)) {
    entries.push_back({.host = host.host,
                       .slots = static_cast<int>(host.ranks.size()),
                       .max_slots = std::nullopt});
  }
  return entries;
}

}  // namespace rankfile
