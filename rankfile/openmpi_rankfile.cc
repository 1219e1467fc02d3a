// SPDX-License-Identifier: Apache-2.0

#include "rankfile/openmpi_rankfile.h"

#include <stdexcept>
#include <utility>

#include "rankfile/host_name.h"
#include "rankfile/placement.h"
#include "rankfile/scanner.h"

namespace rankfile {

namespace {

constexpr std::string_view kRankfileExample = "rank 0=host1 slot=0:0-9";

class RankfileParser {
 public:
  RankfileParser(std::string_view text, std::string_view source,
                 const std::vector<std::string>& hosts)
      : scanner_(text, source), hosts_(hosts) {}

  Placement Parse();

 private:
  void ReadLine();
  std::string ReadHost();
  std::vector<CoreRange> ReadSlotList();
  void ReadSlotPart(std::vector<CoreRange>& cores);
  CoreRange ReadCores(int socket);
  CoreRange ReadRestOfRange(int socket, int first, Position start);
  void ExpectKeyword(std::string_view keyword);

  Scanner scanner_;
  const std::vector<std::string>& hosts_;
  PlacementBuilder builder_;
  bool has_relative_ = false;
  bool has_named_ = false;
};

Placement RankfileParser::Parse() {
  scanner_.SkipToEntry();
  if (scanner_.AtEnd()) {
    scanner_.Fail("the rankfile names no rank; write a line such as " +
                  std::string(kRankfileExample));
  }
  while (!scanner_.AtEnd()) {
    ReadLine();
    scanner_.SkipToEntry();
  }
  return builder_.Finish(scanner_);
}

void RankfileParser::ExpectKeyword(std::string_view keyword) {
  if (!scanner_.Eat(keyword)) {
    scanner_.FailExpected("'" + std::string(keyword) + "'", kRankfileExample);
  }
}

void RankfileParser::ReadLine() {
  const Position start = scanner_.Here();
  ExpectKeyword("rank");
  if (!IsSpaceOrTab(scanner_.Peek())) scanner_.FailExpected("a blank", kRankfileExample);
  scanner_.SkipWhitespace();
  const int rank = scanner_.ReadNumber("a rank", 0, kMaxRanks - 1);
  scanner_.SkipWhitespace();
  scanner_.Expect('=', kRankfileExample);
  scanner_.SkipWhitespace();
  PlacedRank placed;
  placed.host = ReadHost();
  scanner_.SkipWhitespace();
  ExpectKeyword("slot");
  scanner_.Eat('s');
  scanner_.SkipWhitespace();
  scanner_.Expect('=', kRankfileExample);
  scanner_.SkipWhitespace();
  placed.cores = ReadSlotList();
  if (!scanner_.AtEntryEnd()) scanner_.FailExpected("the end of the line", kRankfileExample);
  builder_.Add(rank, std::move(placed), start);
}

std::string RankfileParser::ReadHost() {
  const Position start = scanner_.Here();
  const bool is_relative = scanner_.Eat("+n");
  (is_relative ? has_relative_ : has_named_) = true;
  if (has_relative_ && has_named_) {
    scanner_.FailAt(start, "some hosts are named and others relative (+n0); use one form");
  }
  if (LooksLikeIpv6(scanner_.Word())) scanner_.Fail(kNoIpv6);
  if (!is_relative) return ReadHostName(scanner_, kRankfileExample);

  const int index = scanner_.ReadNumber("a host index", 0, kMaxRanks - 1);
  if (hosts_.empty()) {
    scanner_.FailAt(start, "+n" + std::to_string(index) +
                               " counts in the hosts of the allocation, which are not given here; "
                               "name the host");
  }
  if (static_cast<std::size_t>(index) >= hosts_.size()) {
    scanner_.FailAt(start, "+n" + std::to_string(index) + " is past the last of " +
                               std::to_string(hosts_.size()) + " hosts; +n0 is the first");
  }
  return hosts_[static_cast<std::size_t>(index)];
}

std::vector<CoreRange> RankfileParser::ReadSlotList() {
  const Position start = scanner_.Here();
  std::vector<CoreRange> cores;
  do {
    ReadSlotPart(cores);
  } while (scanner_.Eat(';'));
  const auto length = static_cast<std::size_t>(scanner_.Here().column - start.column);
  if (length > kMaxSlotListLength) {
    scanner_.FailAt(start, "the slot list has " + std::to_string(length) +
                               " characters; Open MPI aborts on more than " +
                               std::to_string(kMaxSlotListLength));
  }
  for (const CoreRange& range : cores) {
    if ((range.socket == kWholeNode) != (cores[0].socket == kWholeNode)) {
      scanner_.FailAt(start,
                      "the slot list mixes socket:core and core; use one form, as in "
                      "slot=0:0-3;1:0-3");
    }
  }
  return NormalCores(std::move(cores));
}

// "0:*", "0:0-9", "1:0-1,3" or, over the whole node, "0-3,8".
void RankfileParser::ReadSlotPart(std::vector<CoreRange>& cores) {
  const Position start = scanner_.Here();
  const int number = scanner_.ReadNumber("a socket or a core", 0, kMaxCore);
  CoreRange range;
  if (!scanner_.Eat(':')) {
    range = ReadRestOfRange(kWholeNode, number, start);
  } else if (number > kMaxSocket) {
    scanner_.FailAt(start, "a socket must be 0 to " + std::to_string(kMaxSocket) + ", not " +
                               std::to_string(number));
  } else if (scanner_.Eat('*')) {
    cores.push_back({.socket = number, .first = 0, .last = kEveryCore});
    return;
  } else {
    range = ReadCores(number);
  }
  cores.push_back(range);
  while (scanner_.Eat(',')) cores.push_back(ReadCores(range.socket));
}

// "3" or "0-9".
CoreRange RankfileParser::ReadCores(int socket) {
  const Position start = scanner_.Here();
  return ReadRestOfRange(socket, scanner_.ReadNumber("a core", 0, kMaxCore), start);
}

// What follows the first number of a range that begins at `start`: nothing or "-9".
CoreRange RankfileParser::ReadRestOfRange(int socket, int first, Position start) {
  const int last = scanner_.Eat('-') ? scanner_.ReadNumber("a core", 0, kMaxCore) : first;
  if (last < first) {
    scanner_.FailAt(start, "the range " + std::to_string(first) + "-" + std::to_string(last) +
                               " runs backwards; write " + std::to_string(last) + "-" +
                               std::to_string(first));
  }
  return {.socket = socket, .first = first, .last = last};
}

// Ranges of a socket are written one by one, "0:0-3;0:8": Open MPI 4.1 fails on "0:0,1".
std::string FormatSlotList(const std::vector<CoreRange>& cores) {
  std::string text;
  for (const CoreRange& range : cores) {
    const bool is_node = range.socket == kWholeNode;
    if (!text.empty()) text += is_node ? ',' : ';';
    if (!is_node) text += std::to_string(range.socket) + ':';
    if (range.last == kEveryCore) {
      text += '*';
      continue;
    }
    text += std::to_string(range.first);
    if (range.last > range.first) text += '-' + std::to_string(range.last);
  }
  return text;
}

}  // namespace

Placement ParseRankfile(std::string_view text, std::string_view source,
                        const std::vector<std::string>& hosts) {
  return RankfileParser(text, source, hosts).Parse();
}

std::string FormatRankfile(const Placement& placement) {
  RequireValid(placement);
  std::string text;
  for (std::size_t rank = 0; rank < placement.ranks.size(); ++rank) {
    const PlacedRank& placed = placement.ranks[rank];
    const std::string slots = FormatSlotList(placed.cores);
    if (slots.empty()) {
      throw std::invalid_argument("rank " + std::to_string(rank) + " on " + placed.host +
                                  " has no cores, which a rankfile must name");
    }
    if (slots.size() > kMaxSlotListLength) {
      throw std::invalid_argument(
          "rank " + std::to_string(rank) + " on " + placed.host + ": the slot list " + slots +
          " has " + std::to_string(slots.size()) + " characters; Open MPI aborts on more than " +
          std::to_string(kMaxSlotListLength));
    }
    text += "rank " + std::to_string(rank) + "=" + placed.host + "     slot=" + slots + "\n";
  }
  return text;
}

}  // namespace rankfile
