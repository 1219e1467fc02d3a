// SPDX-License-Identifier: Apache-2.0
//
// How facts travel from the nodes to ddlrun: as lines on standard output, which srun and mpirun
// bring from every node.  Pure.
//
// A report is cut into short lines, since srun may mix lines of 1,024 bytes or more with those of
// other tasks.  The first report of a node has all of its facts, later ones have only what was
// found out since.  mpirun may cut a line in two when a node writes much at once: so each line says
// how long it is, and under mpirun everything is sent once more at the end.
//
//   ddlrun-node-check: NODE REPORT PART/PARTS BYTES TEXT

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/health/node_info.h"

namespace launcher {

inline constexpr std::size_t kMaxChunkBytes = 900;
// The most parts of one report.  One that names 63 nodes that do not answer has about ten.
inline constexpr int kMaxChunks = 1000;

enum class NodeInfoKind { kAll, kLater };

// The lines of report number `report` (from 0) of a node, each ended by '\n'.
std::string FormatNodeInfo(const NodeInfo& info, int report, NodeInfoKind kind);

// Puts the reports of `nodes` nodes together again.
class NodeInfoReader {
 public:
  explicit NodeInfoReader(int nodes) : parts_(static_cast<std::size_t>(nodes)) {}

  // Takes `line`, which is without its end, if it is one of FormatNodeInfo.  What stands in front
  // of it is ignored: a tag of mpirun --tag-output, or half a line of another node.  False for any
  // other line.
  bool Add(std::string_view line);

  // The facts of each node, from those of its reports that have come as a whole; a later report
  // overrules an earlier one.  Where no report has all facts, `host` is "".  Throws
  // LaunchError(EX_SOFTWARE) as DecodeNodeInfo does.
  std::vector<NodeInfo> Facts() const;

 private:
  struct NodeInfoMessage {
    int parts = 0;
    std::map<int, std::string> texts;
  };
  std::vector<std::map<int, NodeInfoMessage>> parts_;  // by node, by report
};

}  // namespace launcher
