// SPDX-License-Identifier: Apache-2.0
//
// The load of the ranks of a training as text for people.  Pure.

#pragma once

#include <string>
#include <vector>

#include "trainer/control/run_status.h"

namespace ddlctl {

inline constexpr int kLoadNameColumns = 20;

// A line of a view: a name, a time, and what is to be said of it.
struct LoadRow {
  std::string name;  // no longer than kLoadNameColumns
  std::string time;
  std::string rest;
};

// The median of the ranks' own times, then a row for each rank, by rank; of more than six the four
// slowest, the slowest first, and one for the rest.  The slowest has a > before its name.  None
// where nothing is known.
std::vector<LoadRow> LoadRows(const trainer::RunStatus& status);

// "slowest rank 3 on n2 +25 %" where a rank is 5 % or more above the median; else "".
std::string SlowestText(const trainer::RunStatus& status);

}  // namespace ddlctl
