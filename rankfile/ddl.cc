// SPDX-License-Identifier: Apache-2.0

#include "rankfile/ddl.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "rankfile/host_name.h"
#include "rankfile/placement.h"
#include "rankfile/scanner.h"

namespace rankfile {

namespace {

constexpr std::string_view kHostListExample = "g28n14:0,2;g28n15:1,3";
constexpr std::string_view kOptionsExample = "-mode p:4x2x1x1";
constexpr std::string_view kModes = "bnrmcp";

// No blank within, so that words can be told apart again.
bool IsWordChar(char c) { return c > ' ' && c <= '~'; }

// "p:4x2x1x1"
void ReadMode(Scanner& scanner, DdlOptions& options) {
  if (scanner.AtEnd() || kModes.find(scanner.Peek()) == std::string_view::npos) {
    scanner.FailExpected("a mode, one of b n r m c p", kOptionsExample);
  }
  options.mode = scanner.Next();
  scanner.Expect(':', kOptionsExample);

  const std::array<int*, 4> dimensions = {&options.gpus_per_node, &options.nodes_per_rack,
                                          &options.racks_per_aisle, &options.aisles};
  int room = kMaxRanks;  // what the product of the next dimensions may be
  for (int* dimension : dimensions) {
    *dimension = scanner.ReadNumber("a dimension", 1, room);
    room /= *dimension;
    if (!scanner.Eat('x')) break;
    if (dimension == dimensions.back()) {
      scanner.Fail(
          "more than four dimensions (GPUs per node x nodes per rack x racks per aisle x "
          "aisles), as in " +
          std::string(kOptionsExample));
    }
  }
}

}  // namespace

Placement ParseDdlHostList(std::string_view text, std::string_view source) {
  Scanner scanner(text, source);
  PlacementBuilder builder;
  std::unordered_set<std::string> hosts;
  if (!scanner.AtEnd() && scanner.Peek() != '\n') {
    do {
      const Position start = scanner.Here();
      const std::string host = ReadHostName(scanner, kHostListExample);
      if (!hosts.insert(host).second) {
        scanner.FailAt(start, host + " is listed twice; write all its ranks in one place, as in " +
                                  std::string(kHostListExample));
      }
      scanner.Expect(':', kHostListExample);
      do {
        const Position where = scanner.Here();
        const int rank = scanner.ReadNumber("a rank", 0, kMaxRanks - 1);
        builder.Add(rank, {.host = host, .cores = {}}, where);
      } while (scanner.Eat(','));
    } while (scanner.Eat(';'));
  }
  scanner.ExpectEnd(kHostListExample);
  return builder.Finish(scanner);
}

std::string FormatDdlHostList(const Placement& placement) {
  RequireValid(placement);
  std::string text;
  for (const HostRanks& host : RanksByHost(placement)) {
    if (!text.empty()) text += ';';
    text += host.host;
    char separator = ':';
    for (const int rank : host.ranks) {
      text += separator + std::to_string(rank);
      separator = ',';
    }
  }
  return text;
}

DdlOptions ParseDdlOptions(std::string_view text, std::string_view source) {
  Scanner scanner(text, source);
  DdlOptions options;
  bool has_mode = false;
  for (scanner.SkipWhitespace(); !scanner.AtEnd() && scanner.Peek() != '\n';
       scanner.SkipWhitespace()) {
    const Position start = scanner.Here();
    const std::string_view word = scanner.TakeWhile(IsWordChar);
    if (word.empty()) scanner.FailExpected("printable text", kOptionsExample);
    if (word != "-mode") {
      options.extra.emplace_back(word);
      continue;
    }
    if (has_mode) scanner.FailAt(start, "-mode is given twice");
    has_mode = true;
    scanner.SkipWhitespace();
    ReadMode(scanner, options);
    if (!scanner.AtEnd() && IsWordChar(scanner.Peek())) {
      scanner.FailExpected("'x' or a blank", kOptionsExample);
    }
  }
  scanner.ExpectEnd(kOptionsExample);
  if (!has_mode) scanner.Fail("-mode is missing; write " + std::string(kOptionsExample));
  return options;
}

std::string FormatDdlOptions(const DdlOptions& options) {
  std::string text =
      std::string("-mode ") + options.mode + ":" + std::to_string(options.gpus_per_node) + "x" +
      std::to_string(options.nodes_per_rack) + "x" + std::to_string(options.racks_per_aisle) + "x" +
      std::to_string(options.aisles) + " ";
  for (const std::string& word : options.extra) text += word + " ";
  try {
    if (ParseDdlOptions(text) == options) return text;
  } catch (const ParseError& error) {
    throw std::invalid_argument(error.what());
  }
  throw std::invalid_argument("an extra word of DDL_OPTIONS is empty or holds a blank: " + text);
}

}  // namespace rankfile
