// SPDX-License-Identifier: Apache-2.0
//
// The links between the GPUs of a job, and how long an all-reduce takes over them.  Pure.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scaling {

// Which of NCCL's constants hold; kVolta also for older GPUs.
enum class Generation : std::uint8_t { kVolta, kAmpere, kHopper };

// What a table of nccl-tests says of one size: bus bandwidth in bytes/s (nccl-tests, doc/
// PERFORMANCE.md: bytes / time * 2 (n - 1) / n).
struct BusRate {
  double bytes = 0;
  double rate = 0;
};

// Rates are in bytes/s, in one direction, of data that arrives.
struct Links {
  int gpus_per_node = 4;
  double inside = 120e9;  // of a ring through the GPUs of a node
  bool inside_is_pcie = false;
  double between = 12e9;  // all adapters of a node together
  double more_delay = 0;  // seconds of a hop between nodes beyond NCCL's
  Generation generation = Generation::kVolta;
  std::vector<BusRate> measured =
      {};         // ascending bytes; where there are any, they count between nodes
  int nodes = 0;  // of the job, where they have different numbers of GPUs, of which gpus_per_node
                  // is the most; 0: as many as the ranks fill
};

// That `ranks` take.
int NodesOf(const Links& links, int ranks);

// Of a job that has nodes of both kinds, a's with `a_ranks` GPUs: all wait for the slower links.
Links JoinedLinks(const Links& a, int a_ranks, const Links& b, int b_nodes);

// The rate of a ring inside the node and its constants, by a name:
//   xbus     32 GB/s   AC922: two pairs of V100 joined by the processors' bus
//   nvlink2 120        V100 with six NVLinks: DGX-1's mesh, DGX-2's switch
//   nvlink3 230        A100
//   nvlink4 360        H100, H200
//   pcie3    12        without NVLink
//   pcie4    24
// These are NCCL's own figures for a link (20 GB/s of NVLink on Volta and Ampere, 20.6 on Hopper,
// 32 of POWER9's bus, 12 and 24 of PCIe) times the links of a GPU.
struct Inside {
  std::string_view name;
  double rate = 0;
  bool is_pcie = false;
  Generation generation = Generation::kVolta;
};
std::optional<Inside> InsideOfName(std::string_view name);
const std::vector<Inside>& InsideNames();

// What NCCL gets out of an adapter of so many Gbit/s: 12 GB/s of 100 (its src/graph).
double AdapterRate(double gbits);

// Seconds for the sum of `bytes` over `ranks` GPUs, which fill node after node: the fastest of ring
// and tree by the protocols LL, LL128 and Simple, each as NCCL estimates it (2.30.7,
// src/graph/tuning.cc).  A ring takes 2 (ranks - 1) hops and moves 2 (ranks - 1) / ranks of the
// bytes through its slowest link, a tree 2 log2(nodes) hops and twice the bytes.  0 for one rank.
// What is left out: NVLS and CollNet, which need switches that add.
double AllReduceSeconds(const Links& links, int ranks, double bytes);

// The table that all_reduce_perf of nccl-tests prints, and `ddlbench allreduce` after it.  Pure.
struct BusRateTable {
  std::vector<BusRate> rates;  // by bytes, ascending
  std::string problem;         // "LINE: what is wrong"; "" when there is none
};

// Lines that begin with '#' and empty ones are passed over.  Of the others the first column is the
// size in bytes and the eighth the bus bandwidth in GB/s, out of place.  Sizes that took no time to
// speak of (0.00 GB/s) are left out.  A problem: a line with fewer columns or without these
// numbers, sizes that do not grow, no line at all.
BusRateTable ParseBusRates(std::string_view text);

}  // namespace scaling
