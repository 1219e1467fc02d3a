// SPDX-License-Identifier: Apache-2.0
//
// Hostfiles: one host per line, "gpu025 slots=4", as mpirun and ddlrun take them.  Grammar, what a
// repeated host means, and test vectors: rankfile/README.md, "Hostfile".  Pure functions, safe from
// any thread.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rankfile/placement.h"

namespace rankfile {

struct HostfileEntry {
  std::string host;
  std::optional<int> slots;      // empty: the file does not say, and names the host once
  std::optional<int> max_slots;  // never less than slots

  bool operator==(const HostfileEntry&) const = default;
};

// The hosts in the order of their first line.  A host on several lines is one entry whose slots add
// up, a line without a number adding one.
// Throws ParseError naming `source`, line and column, also when the file names no host or more than
// kMaxHosts.
std::vector<HostfileEntry> ParseHostfile(std::string_view text,
                                         std::string_view source = "hostfile");

// "host slots=N max_slots=M", one line per entry.
std::string FormatHostfile(const std::vector<HostfileEntry>& entries);

// Fills each host in turn with as many ranks as it has slots, one where the file does not say.
// Throws std::invalid_argument when these are more than kMaxRanks.
Placement PlaceOnHosts(const std::vector<HostfileEntry>& entries);

// Each host with as many slots as it has ranks.
std::vector<HostfileEntry> HostfileOf(const Placement& placement);

}  // namespace rankfile
