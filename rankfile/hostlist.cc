// SPDX-License-Identifier: Apache-2.0

#include "rankfile/hostlist.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "rankfile/host_name.h"
#include "rankfile/scanner.h"

namespace rankfile {

namespace {

constexpr std::string_view kHostlistExample = "n[1-3,07],login1";
constexpr std::size_t kMaxDigits = 18;  // every such number, plus one, fits in 64 bits

std::string Padded(std::uint64_t number, std::size_t width) {
  std::string digits = std::to_string(number);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

// REQUIRES: at most kMaxDigits digits.
std::uint64_t ToNumber(std::string_view digits) {
  std::uint64_t number = 0;
  for (const char c : digits) number = 10 * number + static_cast<std::uint64_t>(c - '0');
  return number;
}

// "008-010": as many zeros in front as the first number has.
struct Range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::size_t width = 0;
};

// Text, then a bracket group; the last piece of an item may have no group.
struct Piece {
  std::string text;
  std::vector<Range> ranges;
  std::size_t count = 1;   // names the group stands for
  std::size_t length = 0;  // characters of the longest of them
};

// One item between commas: "row[0-1]_rack[2-3]-ib".
struct Item {
  std::vector<Piece> pieces;
  std::size_t count = 1;
};

class HostlistParser {
 public:
  HostlistParser(std::string_view text, std::string_view source) : scanner_(text, source) {}

  std::vector<std::string> Parse();

 private:
  // `room`: hosts that the list may still name; counted before any name is made.
  Item ReadItem(std::size_t room);
  void ReadGroup(Piece& piece, std::size_t room);
  Range ReadRange();
  std::string_view ReadDigits();

  Scanner scanner_;
};

// Adds the names of `item`: its last group varies fastest, then the first, the second and so on, as
// in Slurm.
void AppendNames(const Item& item, std::vector<std::string>& hosts) {
  std::vector<std::vector<std::string>> numbers(item.pieces.size());  // of each group
  std::vector<std::size_t> odometer;  // indices of the groups, the fastest first
  for (std::size_t i = 0; i < item.pieces.size(); ++i) {
    for (const Range& range : item.pieces[i].ranges) {
      for (std::uint64_t n = range.first; n <= range.last; ++n) {
        numbers[i].push_back(Padded(n, range.width));
      }
    }
    if (!numbers[i].empty()) odometer.push_back(i);
  }
  if (!odometer.empty()) std::rotate(odometer.begin(), odometer.end() - 1, odometer.end());

  std::vector<std::size_t> chosen(numbers.size(), 0);
  for (std::size_t made = 0; made < item.count; ++made) {
    std::string name;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      name += item.pieces[i].text;
      if (!numbers[i].empty()) name += numbers[i][chosen[i]];
    }
    hosts.push_back(std::move(name));
    for (const std::size_t i : odometer) {
      if (++chosen[i] < numbers[i].size()) break;
      chosen[i] = 0;
    }
  }
}

std::vector<std::string> HostlistParser::Parse() {
  std::vector<std::string> hosts;
  if (!scanner_.AtEnd() && !IsSpaceOrTab(scanner_.Peek()) && scanner_.Peek() != '\n') {
    do {
      AppendNames(ReadItem(kMaxHosts - hosts.size()), hosts);
    } while (scanner_.Eat(','));
  }
  if (scanner_.Peek() == ']') scanner_.Fail("']' without a '[' before it; write n[1-3]");
  scanner_.ExpectEnd(kHostlistExample);
  return hosts;
}

Item HostlistParser::ReadItem(std::size_t room) {
  const Position start = scanner_.Here();
  if (room == 0) {
    scanner_.Fail("the list names more than " + std::to_string(kMaxHosts) + " hosts from here on");
  }
  if (scanner_.Peek() != '[' && !CanStartHostName(scanner_.Peek())) {
    scanner_.FailExpected("a host name (it starts with a letter or a digit)", kHostlistExample);
  }
  Item item;
  std::size_t length = 0;
  bool has_group = true;
  while (has_group) {
    Piece piece;
    piece.text = scanner_.TakeWhile(IsHostNameChar);
    has_group = scanner_.Eat('[');
    if (has_group) ReadGroup(piece, room / item.count);
    item.count *= piece.count;
    length += piece.text.size() + piece.length;
    if (length > kMaxHostNameLength) {
      scanner_.FailAt(start, "a host name of this item is longer than " +
                                 std::to_string(kMaxHostNameLength) + " characters");
    }
    item.pieces.push_back(std::move(piece));
  }
  return item;
}

void HostlistParser::ReadGroup(Piece& piece, std::size_t room) {
  piece.count = 0;
  do {
    const Position start = scanner_.Here();
    const Range range = ReadRange();
    if (range.last - range.first >= room - piece.count) {
      scanner_.FailAt(
          start, "the list names more than " + std::to_string(kMaxHosts) + " hosts from here on");
    }
    piece.count += range.last - range.first + 1;
    piece.length = std::max(piece.length, Padded(range.last, range.width).size());
    piece.ranges.push_back(range);
  } while (scanner_.Eat(','));
  scanner_.Expect(']', kHostlistExample);
}

Range HostlistParser::ReadRange() {
  const Position start = scanner_.Here();
  const std::string_view first = ReadDigits();
  const std::string_view last = scanner_.Eat('-') ? ReadDigits() : first;
  const Range range = {.first = ToNumber(first), .last = ToNumber(last), .width = first.size()};
  if (range.last < range.first) {
    scanner_.FailAt(start, "the range " + std::string(first) + "-" + std::string(last) +
                               " runs backwards; write the smaller number first, as in n[1-3]");
  }
  return range;
}

std::string_view HostlistParser::ReadDigits() {
  const Position start = scanner_.Here();
  const std::string_view digits = scanner_.TakeWhile(IsDigit);
  if (digits.empty()) scanner_.FailExpected("a number", kHostlistExample);
  if (digits.size() > kMaxDigits) {
    scanner_.FailAt(start, "the number has " + std::to_string(digits.size()) +
                               " digits, more than " + std::to_string(kMaxDigits));
  }
  return digits;
}

// Names that follow each other and differ in their last number only.
struct Run {
  std::string prefix;
  std::vector<Range> ranges;  // empty: the name has no number
};

// Splits "gpu007" into "gpu" and "007". A number of more than kMaxDigits counts as text.
std::pair<std::string_view, std::string_view> SplitLastNumber(std::string_view host) {
  std::size_t start = host.size();
  while (start > 0 && IsDigit(host[start - 1])) --start;
  if (host.size() - start > kMaxDigits) start = host.size();
  return {host.substr(0, start), host.substr(start)};
}

std::string FormatRun(const Run& run) {
  if (run.ranges.empty()) return run.prefix;
  std::string numbers;
  for (const Range& range : run.ranges) {
    if (!numbers.empty()) numbers += ',';
    numbers += Padded(range.first, range.width);
    if (range.last > range.first) numbers += '-' + Padded(range.last, range.width);
  }
  const bool is_single = run.ranges.size() == 1 && run.ranges[0].first == run.ranges[0].last;
  return run.prefix + (is_single ? numbers : '[' + numbers + ']');
}

}  // namespace

std::vector<std::string> ExpandHostlist(std::string_view text, std::string_view source) {
  return HostlistParser(text, source).Parse();
}

std::string CompressHostlist(const std::vector<std::string>& hosts) {
  if (hosts.size() > kMaxHosts) {
    throw std::invalid_argument("a hostlist holds at most " + std::to_string(kMaxHosts) +
                                " hosts, not " + std::to_string(hosts.size()));
  }
  std::vector<Run> runs;
  for (const std::string& host : hosts) {
    if (!IsHostName(host)) throw std::invalid_argument("'" + host + "' is not a host name");
    const auto [prefix, digits] = SplitLastNumber(host);
    const bool joins = !digits.empty() && !runs.empty() && !runs.back().ranges.empty() &&
                       runs.back().prefix == prefix;
    if (!joins) runs.push_back({.prefix = std::string(prefix), .ranges = {}});
    if (digits.empty()) continue;
    std::vector<Range>& ranges = runs.back().ranges;
    if (joins && Padded(ranges.back().last + 1, ranges.back().width) == digits) {
      ++ranges.back().last;
    } else {
      const std::uint64_t number = ToNumber(digits);
      ranges.push_back({.first = number, .last = number, .width = digits.size()});
    }
  }
  std::string text;
  for (const Run& run : runs) {
    if (!text.empty()) text += ',';
    text += FormatRun(run);
  }
  return text;
}

}  // namespace rankfile
