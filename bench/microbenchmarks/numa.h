// SPDX-License-Identifier: Apache-2.0
//
// The NUMA nodes of this machine, and running on the CPUs of one for a while.

#pragma once

#include <string>
#include <vector>

namespace bench {

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
