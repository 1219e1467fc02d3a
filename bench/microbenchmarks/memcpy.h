// SPDX-License-Identifier: Apache-2.0
//
// ddlbench copies: how fast each rank copies between the host's memory and its device: all ranks at
// once, as in a training, and one rank of each host at a time, from where it is bound and from each
// NUMA node.  Which node is the fastest is where the device is, whatever the firmware says.

#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "bench/microbenchmarks/options.h"
#include "bench/microbenchmarks/ranks.h"
#include "trainer/backend/backend.h"

namespace bench {

// Throws trainer::Error(EX_USAGE) naming the option that is wrong.
void CheckCopiesOptions(const MemcpyBenchOptions& options);

struct CopyRates {
  double to_device = 0;  // GB/s, 1e9 bytes: the median of the rounds
  double to_host = 0;
};

// The calling thread's memory is where the thread is: of a GPU it is pinned.  `before` is called
// before each copy.
CopyRates MeasureMemcpy(const MemcpyBenchOptions& options, trainer::Backend& backend,
                        const std::function<void()>& before);

// A row of the table.  `from` is "all": where the rank is bound, all at once; "bound": there, alone
// on its host; or a NUMA node, alone.  `bridge`: HostBridgeOf the device.
std::string FormatCopyRow(int rank, const std::string& host, const std::string& device,
                          const std::string& bridge, const std::string& from,
                          const CopyRates& rates);

// Prints the table to `out`, on rank 0.  NUMA nodes on which a rank may not run are left out.
// Returns 0.  Throws trainer::Error.
int RunCopies(const MemcpyBenchOptions& options, Ranks& ranks, std::ostream& out);

}  // namespace bench
