// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/rank_end.h"

#include <array>
#include <cstdio>
#include <cstring>

namespace launcher {
namespace {

constexpr std::string_view kStart = "ddlrun-rank: rank ";
// Of a line with the longest host name.
constexpr std::size_t kLongest = 500;

}  // namespace

std::string DescribeEnd(const RankEnd& end) {
  if (end.signal == 0) return "exit code " + std::to_string(end.exit_code);
  return "signal " + std::to_string(end.signal) + " (" + strsignal(end.signal) + ")";
}

std::string FormatRankEnd(const RankEnd& end) {
  return std::string(kStart) + std::to_string(end.rank) + " on " + end.host + " (pid " +
         std::to_string(end.pid) + ") ended with " + DescribeEnd(end) + "\n";
}

std::optional<RankEnd> ParseRankEnd(std::string_view line) {
  const std::size_t start = line.find(kStart);
  if (start == std::string_view::npos || line.size() > kLongest) return std::nullopt;
  const std::string text(line.substr(start + kStart.size()));
  RankEnd end;
  std::array<char, 256> host = {};
  int length = 0;
  if (std::sscanf(text.c_str(), "%7d on %255s (pid %10ld) ended with %n", &end.rank, host.data(),
                  &end.pid, &length) != 3 ||
      length == 0 || end.rank < 0) {
    return std::nullopt;
  }
  end.host = host.data();
  const char* rest = text.c_str() + length;
  if (std::sscanf(rest, "signal %3d", &end.signal) == 1 && end.signal > 0) {
    end.exit_code = 128 + end.signal;
    return end;
  }
  if (std::sscanf(rest, "exit code %3d", &end.exit_code) == 1 && end.exit_code > 0) return end;
  return std::nullopt;
}

}  // namespace launcher
