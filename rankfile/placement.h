// SPDX-License-Identifier: Apache-2.0
//
// Which rank runs on which host, on which cores: what rankfiles, hostfiles and DDL_HOST_LIST say,
// each in its own way.  Conversions between the formats go through this value.  Pure; safe from any
// thread.

#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "rankfile/scanner.h"

namespace rankfile {

inline constexpr int kMaxRanks = 1 << 20;
inline constexpr int kMaxSocket = 1023;
inline constexpr int kMaxCore = 65535;

inline constexpr int kWholeNode = -1;  // CoreRange::socket: cores are counted over the node
inline constexpr int kEveryCore = std::numeric_limits<int>::max();  // CoreRange::last of "socket:*"

// Cores first..last, both included, of one socket or of the node.  Numbers are logical (hwloc's
// order), cores and not hardware threads.
struct CoreRange {
  int socket = kWholeNode;
  int first = 0;
  int last = 0;

  bool operator==(const CoreRange&) const = default;
};

struct PlacedRank {
  std::string host;
  std::vector<CoreRange> cores;  // in normal form; empty: not bound

  bool operator==(const PlacedRank&) const = default;
};

// Invariants, checked by FindProblem: host names are valid, and each host is spelled in one way;
// all ranks are bound or none; cores are in normal form, and all counted by socket or all over the
// node.  Two ranks may share cores.
struct Placement {
  std::vector<PlacedRank> ranks;  // by rank; may be empty

  bool operator==(const Placement&) const = default;
};

struct PlacementProblem {
  int rank = 0;  // the first rank that breaks an invariant
  std::string message;
};
std::optional<PlacementProblem> FindProblem(const Placement& placement);

// Throws std::invalid_argument, "rank 3: ...", when there is a problem.
void RequireValid(const Placement& placement);

// The normal form of a set of cores: ascending by socket and number; ranges that overlap or touch
// become one.
std::vector<CoreRange> NormalCores(std::vector<CoreRange> cores);

struct HostRanks {
  std::string host;
  std::vector<int> ranks;  // ascending
};
// The ranks of each host; hosts in the order of their lowest rank.
std::vector<HostRanks> RanksByHost(const Placement& placement);

// Collects ranks in the order a text names them and makes a Placement of them, or refuses with the
// place in the text: a rank twice, a gap, a broken invariant.  For one thread.
class PlacementBuilder {
 public:
  // `where`: what a refusal of this rank points to.  REQUIRES: rank >= 0.
  void Add(int rank, PlacedRank placed, Position where);

  // Throws ParseError through `scanner`.  Call once.
  Placement Finish(const Scanner& scanner);

 private:
  struct Entry {
    int rank;
    PlacedRank placed;
    Position where;
  };
  std::vector<Entry> entries_;
};

}  // namespace rankfile
