// SPDX-License-Identifier: Apache-2.0
//
// ddlbench copies: how fast each rank copies between the host's memory and its device: all ranks at
// once, as in a training, and one rank of each host at a time, from where it is bound and from each
// NUMA node.  Which node is the fastest is where the device is, whatever the firmware says.

#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

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

// A NUMA node of this machine.
struct NumaCpus {
  int number = 0;
  std::vector<int> cpus;
};

// Those that have CPUs, by their numbers; `root` is put in front of /sys, for tests; "" is the
// machine itself.  None where the kernel lists none.  Throws rankfile::ParseError for a list that
// is none.
std::vector<NumaCpus> ReadNumaCpus(const std::string& root);

// The bus of the host bridge, "0000:3a", behind which the PCI device "0000:3B:00.0" is, through
// whatever bridges: hwloc knows places of these buses alone.  "-" where the kernel does not tell.
std::string HostBridgeOf(const std::string& root, const std::string& device);

// For as long as this lives, the calling thread runs on `cpus` and takes memory of where it runs;
// then as before.  A thread may leave where it was bound, but not the CPUs that its control group
// has.
class OnCpus {
 public:
  explicit OnCpus(const std::vector<int>& cpus);
  ~OnCpus();
  OnCpus(const OnCpus&) = delete;
  OnCpus& operator=(const OnCpus&) = delete;

  // Whether it may run on any of them; else it is where it was.
  bool are_allowed() const { return are_allowed_; }

 private:
  std::vector<unsigned long> cpus_before_;
  int policy_before_ = 0;  // of memory, as set_mempolicy(2) has it, and its nodes
  std::vector<unsigned long> nodes_before_;
  bool are_allowed_ = false;
};

}  // namespace bench
