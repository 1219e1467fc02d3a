// SPDX-License-Identifier: Apache-2.0
//
// Facts on their way from the nodes to ddlrun: lines on standard output, which srun and mpirun
// carry from every node.  A report is cut into short lines, since srun keeps only lines under 1,024
// bytes apart from those of other tasks.  What a node is by itself is sent once, later reports have
// what came to be known since.  mpirun may cut a line in two when a node writes much at once, so
// that a line says how long it is, and mpirun is given everything once more at the end.  Pure.
//
//   ddlrun-node-check: NODE REPORT PART/PARTS BYTES TEXT

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/health/node_facts.h"

namespace launcher {

inline constexpr std::size_t kMaxPartBytes = 900;
// Most parts of one report; one that names 63 nodes which do not answer has about ten.
inline constexpr int kMaxParts = 1000;

enum class FactsKind { kAll, kLater };

// The lines of report number `report` (from 0) of a node, each ended by '\n'.
std::string FormatFacts(const NodeFacts& facts, int report, FactsKind kind);

// Puts the lines of `nodes` nodes together again.
class FactsReader {
 public:
  explicit FactsReader(int nodes) : parts_(static_cast<std::size_t>(nodes)) {}

  // Takes `line` (without its end) if it is one of FormatFacts; what stands in front is passed
  // over: a tag of mpirun --tag-output, or half a line of another node.  False for any other line.
  bool Add(std::string_view line);

  // Of each node what its reports say that came whole, a later one counting more; where none has
  // all facts, `host` is "".  Throws LaunchError(EX_SOFTWARE) as DecodeNodeFacts does.
  std::vector<NodeFacts> Facts() const;

 private:
  struct Report {
    int parts = 0;
    std::map<int, std::string> texts;
  };
  std::vector<std::map<int, Report>> parts_;  // by node, by report
};

}  // namespace launcher
