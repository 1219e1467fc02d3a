// SPDX-License-Identifier: Apache-2.0
//
// The two strings that IBM's DDL library reads: DDL_HOST_LIST and DDL_OPTIONS.  Formats, where they
// were observed, and test vectors: rankfile/README.md, "DDL".  Pure functions, safe from any
// thread.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rankfile/placement.h"

namespace rankfile {

// "g28n14:0,2;g28n15:1,3": the global ranks of each host.  "" gives an empty placement.  No rank
// has cores in the result.  Throws ParseError naming `source`.
Placement ParseDdlHostList(std::string_view text, std::string_view source = "DDL_HOST_LIST");

// Hosts in the order of their lowest rank.  Throws std::invalid_argument when the placement breaks
// an invariant.
std::string FormatDdlHostList(const Placement& placement);

// "-mode p:4x2x1x1 ": the algorithm, and the shape of the machine it runs on.
struct DdlOptions {
  char mode = 'p';        // b n r m c p: rankfile/README.md says what they mean
  int gpus_per_node = 1;  // each factor from 1, their product at most kMaxRanks
  int nodes_per_rack = 1;
  int racks_per_aisle = 1;
  int aisles = 1;
  std::vector<std::string> extra = {};  // the other words, in order: {"-dump_iter", "10"}

  int RankCount() const { return gpus_per_node * nodes_per_rack * racks_per_aisle * aisles; }
  bool operator==(const DdlOptions&) const = default;
};

// Dimensions left out at the end are 1: "-mode b:4x2".  Throws ParseError naming `source`.
DdlOptions ParseDdlOptions(std::string_view text, std::string_view source = "DDL_OPTIONS");

// All four dimensions, the extra words, and the blank at the end that ddlrun writes.
// Throws std::invalid_argument when a field is out of its limits or an extra word is empty, has
// characters that are not printable ASCII, or is "-mode".
std::string FormatDdlOptions(const DdlOptions& options);

}  // namespace rankfile
