// SPDX-License-Identifier: Apache-2.0
//
// Times of all-reduces as two well-known programs print them, so that what reads their output reads
// ours: all_reduce_perf of nccl-tests 2.13, and osu_allreduce of OSU's micro-benchmarks 5.9.  Pure.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/microbenchmarks/options.h"

namespace bench {

// Of sums of one size, one sum; over the ranks.
struct AllReduceTimes {
  std::int64_t bytes = 0;
  double mean_seconds = 0;
  double min_seconds = 0;
  double max_seconds = 0;
  int iterations = 0;      // that were timed
  std::int64_t wrong = 0;  // numbers, of all ranks, that were not the sum
};

// GB/s (1e9 bytes): bytes over seconds, and nccl-tests' "bus bandwidth", which is what each link
// carries if the ranks form a ring: algbw * 2 (n - 1) / n.
double AlgorithmBandwidth(std::int64_t bytes, double seconds);
double BusBandwidth(double algorithm_bandwidth, int ranks);

// A rank in the list of devices.
struct RankDevice {
  int rank = 0;
  int pid = 0;
  std::string host;
  int device = 0;
  std::string pci;   // "0000:1B:00.0"; "": none
  std::string name;  // "CPU", "NVIDIA H200"
};
std::string FormatNcclDevice(const RankDevice& device);

// Up to the first row.  `devices`: a line of each rank.
std::string FormatNcclHead(const AllReduceOptions& options, const std::string& description,
                           std::span<const std::string> devices);
// Sums are in place; "N/A" stands where nccl-tests has those that are not.
std::string FormatNcclRow(const AllReduceTimes& times, int ranks);
std::string FormatNcclTail(std::span<const AllReduceTimes> all, int ranks);

// With OSU's option -f: the extremes over the ranks beside the mean.
std::string FormatOsuHead();
std::string FormatOsuRow(const AllReduceTimes& times);

}  // namespace bench
