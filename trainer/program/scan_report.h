// SPDX-License-Identifier: Apache-2.0
//
// What it took all ranks to find the records of the data files, as a line for the log.

#pragma once

#include <string>

#include "trainer/comm/communicator.h"
#include "trainer/data/files/scan_cost.h"

namespace trainer {

// "records of 1024 files found in 0.73 s: 1281167 headers, 20.5 MB, read by 1 of 4 ranks".  Headers
// and bytes are those of all ranks, the time is the longest of any.  Collective; the same on every
// rank but for the number of files, which is its own, and where the places of records came from
// when nobody read a header: `index_dir`, or, where that is "", `scan_cache_dir`.
std::string DescribeScans(const ScanCost& own, const std::string& index_dir,
                          const std::string& scan_cache_dir, Communicator& communicator);

}  // namespace trainer
