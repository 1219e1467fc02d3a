// SPDX-License-Identifier: Apache-2.0

#include "bench/microbenchmarks/all_reduce_formats.h"

#include <fmt/format.h>

namespace bench {
namespace {

constexpr double kBytesPerGigabyte = 1e9;
constexpr double kMicrosecondsPerSecond = 1e6;

// Seven places, as nccl-tests gives a time.
std::string Microseconds(double seconds) {
  const double value = seconds * kMicrosecondsPerSecond;
  constexpr double kNoDigit = 10000;
  constexpr double kOneDigit = 100;
  return fmt::format("{:7.{}f}", value, value >= kNoDigit ? 0 : value >= kOneDigit ? 1 : 2);
}

double BusBandwidthOf(const AllReduceTimes& times, int ranks) {
  return BusBandwidth(AlgorithmBandwidth(times.bytes, times.mean_seconds), ranks);
}

// "1B" of "0000:1B:00.0", in small letters.
std::string BusOf(const std::string& pci) {
  const std::size_t colon = pci.find(':');
  std::string bus = colon == std::string::npos ? "00" : pci.substr(colon + 1, 2);
  for (char& c : bus) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  return bus;
}

}  // namespace

double AlgorithmBandwidth(std::int64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / kBytesPerGigabyte / seconds : 0;
}

double BusBandwidth(double algorithm_bandwidth, int ranks) {
  return algorithm_bandwidth * 2 * (ranks - 1) / ranks;
}

std::string FormatNcclDevice(const RankDevice& device) {
  return fmt::format("#  Rank {:2} Group  0 Pid {:6} on {:>10} device {:2} [0x{}] {}", device.rank,
                     device.pid, device.host, device.device, BusOf(device.pci), device.name);
}

std::string FormatNcclHead(const AllReduceOptions& options, const std::string& description,
                           std::span<const std::string> devices) {
  std::string text = fmt::format(
      "# {}\n"
      "# nThread 1 nGpus 1 minBytes {} maxBytes {} step: {}(factor) warmup iters: {} iters: {} "
      "agg iters: 1 validation: 1 graph: 0\n"
      "#\n"
      "# Using devices\n",
      description, options.min_bytes, options.max_bytes, options.factor, options.warmup_iterations,
      options.iterations);
  for (const std::string& device : devices) text += device + "\n";
  return text +
         "#\n"
         "#                                                              out-of-place              "
         "         in-place          \n"
         "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
         "time   algbw   busbw #wrong\n"
         "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
         "(us)  (GB/s)  (GB/s)       \n";
}

std::string FormatNcclRow(const AllReduceTimes& times, int ranks) {
  constexpr std::int64_t kBytesOfNumber = 4;
  const double bandwidth = AlgorithmBandwidth(times.bytes, times.mean_seconds);
  return fmt::format(
      "{:12}  {:12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>5}  {}  {:6.2f}  {:6.2f}  {:5}\n",
      times.bytes, times.bytes / kBytesOfNumber, "float", "sum", -1, "N/A", "N/A", "N/A", "N/A",
      Microseconds(times.mean_seconds), bandwidth, BusBandwidth(bandwidth, ranks), times.wrong);
}

std::string FormatNcclTail(std::span<const AllReduceTimes> all, int ranks) {
  std::int64_t wrong = 0;
  double bandwidth = 0;
  for (const AllReduceTimes& times : all) {
    wrong += times.wrong;
    bandwidth += BusBandwidthOf(times, ranks) / static_cast<double>(all.size());
  }
  return fmt::format("# Out of bounds values : {} {}\n# Avg bus bandwidth    : {:g} \n#\n", wrong,
                     wrong == 0 ? "OK" : "FAILED", bandwidth);
}

std::string FormatOsuHead() {
  return "\n# OSU MPI Allreduce Latency Test v5.9\n"
         "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n";
}

std::string FormatOsuRow(const AllReduceTimes& times) {
  return fmt::format("{:<10}{:18.2f}{:18.2f}{:18.2f}{:12}\n", times.bytes,
                     times.mean_seconds * kMicrosecondsPerSecond,
                     times.min_seconds * kMicrosecondsPerSecond,
                     times.max_seconds * kMicrosecondsPerSecond, times.iterations);
}

}  // namespace bench
