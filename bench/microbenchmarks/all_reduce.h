// SPDX-License-Identifier: Apache-2.0
//
// ddlbench allreduce: what ddltraind's communicators take to sum fp32 numbers of all ranks in
// place, by size, outside of a training.

#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "bench/microbenchmarks/options.h"
#include "bench/microbenchmarks/ranks.h"
#include "trainer/backend/backend.h"
#include "trainer/comm/communicator.h"

namespace bench {

// Times of all-reduces as two well-known programs print them, so that what reads their output reads
// ours: all_reduce_perf of nccl-tests 2.13, and osu_allreduce of OSU's micro-benchmarks 5.9.  Pure.

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

// Throws trainer::Error(EX_USAGE) naming the option that is wrong.
void CheckAllReduceOptions(const AllReduceOptions& options);

// Bytes, whole fp32 numbers, from min_bytes to max_bytes.  REQUIRES: checked options.
std::vector<std::int64_t> SizesOf(const AllReduceOptions& options);

// Number `index` of what rank `rank` brings to a sum that is checked, and what the sum is: small
// whole numbers, which fp32 sums exactly in any order.
float ShareOf(int rank, std::size_t index);
float SumOf(int ranks, std::size_t index);

// How long sums are waited for.
enum class Waiting : std::uint8_t {
  kAtTheEnd,  // one sum is queued behind the other, as nccl-tests does
  kEach,      // each begins on all ranks together and is waited for, as OSU's benchmarks do
};

class AllReduceBench {
 public:
  // Memory for sums of up to `max_bytes`, of the device where `communicator` sums there, else of
  // the host.  Both outlive it.  Throws trainer::Error(EX_OSERR) when there is not enough.
  AllReduceBench(trainer::Communicator& communicator, trainer::Backend& backend,
                 std::int64_t max_bytes);

  // Collective; the same result on every rank.
  AllReduceTimes Measure(std::int64_t bytes, int warmup, int iterations, Waiting waiting);

 private:
  void Sum(std::size_t count);
  void Wait();
  std::int64_t CountWrong(std::size_t count);
  double SecondsOfOne(std::size_t count, int iterations, Waiting waiting);

  trainer::Communicator& communicator_;
  trainer::Backend& backend_;
  std::unique_ptr<trainer::Stream> stream_;
  std::vector<float> host_;
  trainer::Buffer device_;  // empty where sums are of host memory
  void* data_;
};

// Prints the table to `out`, on rank 0, and on `messages` what it is a table of.  Returns 0, or
// EX_SOFTWARE when a sum was wrong.  Throws trainer::Error.
int RunAllReduce(const AllReduceOptions& options, Ranks& ranks, std::ostream& out,
                 std::ostream& messages);

}  // namespace bench
