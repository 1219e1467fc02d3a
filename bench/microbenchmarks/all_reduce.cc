// SPDX-License-Identifier: Apache-2.0

#include "bench/microbenchmarks/all_reduce.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>

#include "bench/base/diagnostics.h"
#include "trainer/backend/registry.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/nccl_communicator.h"
#include "trainer/comm/nccl_obstacle.h"
#include "trainer/core/error.h"
#include "trainer/train/step/gradients.h"

namespace bench {
namespace {

using trainer::Backend;
using trainer::Communicator;
using trainer::Error;

constexpr std::int64_t kBytesOfNumber = sizeof(float);

// NCCL beside what the ranks have met by, or null with `obstacle` where it cannot be or is not
// wanted.
std::unique_ptr<Communicator> MakeNccl(const AllReduceOptions& options, const Ranks& ranks,
                                       Backend& backend, std::string& obstacle) {
  if (options.comm == "mpi") return nullptr;
  Communicator& host = ranks.communicator();
  obstacle = trainer::NcclObstacle(
      host,
      {.gpu = backend.device_id(), .multi_rank = ranks.environment()(trainer::kMultiRankVariable)});
  if (!obstacle.empty()) {
    if (options.comm == "nccl") throw Error(EX_CONFIG, "--comm=nccl cannot be: " + obstacle);
    return nullptr;
  }
  return trainer::MakeNcclCommunicator(host, trainer::MakeNcclDeps(backend), {});
}

std::vector<std::string> Devices(const Ranks& ranks, const Backend& backend) {
  const std::string own =
      FormatNcclDevice({.rank = ranks.self().rank,
                        .pid = ::getpid(),
                        .host = ranks.host(),
                        .device = backend.is_host() ? 0 : ranks.self().local_rank,
                        .pci = backend.device_id(),
                        .name = backend.is_host() ? "CPU" : "GPU"});
  return trainer::GatherTexts(ranks.communicator(), own);
}

}  // namespace

void CheckAllReduceOptions(const AllReduceOptions& options) {
  constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
  if (options.min_bytes < kBytesOfNumber || options.max_bytes < options.min_bytes ||
      options.max_bytes > kMaxBytes) {
    throw Error(EX_USAGE, fmt::format("--min_bytes={} and --max_bytes={}: they must be from {} to "
                                      "1T, and the second no less than the first",
                                      options.min_bytes, options.max_bytes, kBytesOfNumber));
  }
  if (options.factor < 2) {
    throw Error(EX_USAGE, fmt::format("--factor={} must be 2 or more", options.factor));
  }
  constexpr int kMaxIterations = 1'000'000;
  RequireRange("--iterations", options.iterations, 1, kMaxIterations);
  RequireRange("--warmup_iterations", options.warmup_iterations, 0, kMaxIterations);
}

std::vector<std::int64_t> SizesOf(const AllReduceOptions& options) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = options.min_bytes; bytes <= options.max_bytes;
       bytes *= options.factor) {
    sizes.push_back(bytes / kBytesOfNumber * kBytesOfNumber);
  }
  return sizes;
}

float ShareOf(int rank, std::size_t index) {
  constexpr int kRankValues = 16;
  constexpr std::size_t kIndexValues = 7;
  return static_cast<float>((rank % kRankValues + 1) * static_cast<int>(index % kIndexValues + 1));
}

float SumOf(int ranks, std::size_t index) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += ShareOf(rank, index);
  return sum;
}

AllReduceBench::AllReduceBench(Communicator& communicator, Backend& backend, std::int64_t max_bytes)
    : communicator_(communicator),
      backend_(backend),
      stream_(backend.MakeStream()),
      host_(static_cast<std::size_t>(max_bytes / kBytesOfNumber)),
      data_(host_.data()) {
  if (communicator.reduces_device_memory() && !backend.is_host()) {
    const auto bytes = static_cast<std::size_t>(max_bytes);
    device_ = communicator.AllocateReduced(bytes);  // as a training's gradients
    if (device_.bytes() == 0) device_ = backend.AllocateDevice(bytes);
    data_ = device_.data();
  }
}

void AllReduceBench::Sum(std::size_t count) {
  communicator_.StartAllReduce(data_, count, trainer::DType::kFloat32, trainer::Reduction::kSum,
                               *stream_);
}

void AllReduceBench::Wait() {
  communicator_.Finish(*stream_);
  communicator_.Synchronize(*stream_);
}

std::int64_t AllReduceBench::CountWrong(std::size_t count) {
  const int rank = communicator_.rank();
  for (std::size_t i = 0; i < count; ++i) host_[i] = ShareOf(rank, i);
  const std::size_t bytes = count * sizeof(float);
  if (data_ != host_.data()) backend_.CopyToDevice(data_, host_.data(), bytes, *stream_);
  Sum(count);
  Wait();
  if (data_ != host_.data()) {
    backend_.CopyToHost(host_.data(), data_, bytes, *stream_);
    stream_->Synchronize();
  }
  const int ranks = communicator_.size();
  constexpr std::size_t kPeriod = 7;  // of SumOf
  std::array<float, kPeriod> expected{};
  for (std::size_t i = 0; i < kPeriod; ++i) expected[i] = SumOf(ranks, i);
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += host_[i] == expected[i % kPeriod] ? 0 : 1;
  // The numbers that are timed: their sums stay as small as they are.
  std::fill_n(host_.begin(), count, 0.0F);
  if (data_ != host_.data()) {
    backend_.Zero(data_, bytes, *stream_);
    stream_->Synchronize();
  }
  return wrong;
}

double AllReduceBench::SecondsOfOne(std::size_t count, int iterations, Waiting waiting) {
  using Clock = std::chrono::steady_clock;
  Clock::duration spent{};
  communicator_.Barrier();
  if (waiting == Waiting::kAtTheEnd) {
    const auto start = Clock::now();
    for (int i = 0; i < iterations; ++i) Sum(count);
    Wait();
    spent = Clock::now() - start;
  } else {
    for (int i = 0; i < iterations; ++i) {
      const auto start = Clock::now();
      Sum(count);
      Wait();
      spent += Clock::now() - start;
      communicator_.Barrier();
    }
  }
  return std::chrono::duration<double>(spent).count() / iterations;
}

AllReduceTimes AllReduceBench::Measure(std::int64_t bytes, int warmup, int iterations,
                                       Waiting waiting) {
  const auto count = static_cast<std::size_t>(bytes / kBytesOfNumber);
  DDL_CHECK(count <= host_.size());
  const std::int64_t wrong = CountWrong(count);
  if (warmup > 0) SecondsOfOne(count, warmup, waiting);
  const double seconds = SecondsOfOne(count, iterations, waiting);
  std::array<double, 2> sums = {seconds, static_cast<double>(wrong)};
  std::array<double, 2> extremes = {seconds, -seconds};
  communicator_.AllReduceSum(sums);
  communicator_.AllReduceMax(extremes);
  return {.bytes = bytes,
          .mean_seconds = sums[0] / communicator_.size(),
          .min_seconds = -extremes[1],
          .max_seconds = extremes[0],
          .iterations = iterations,
          .wrong = static_cast<std::int64_t>(sums[1])};
}

int RunAllReduce(const AllReduceOptions& options, Ranks& ranks, std::ostream& out,
                 std::ostream& messages) {
  CheckAllReduceOptions(options);
  Communicator& host = ranks.communicator();
  trainer::BackendOptions backend_options;
  backend_options.local_rank = ranks.self().local_rank;
  const std::unique_ptr<Backend> backend = trainer::MakeBackend(options.backend, backend_options);
  std::string obstacle;
  const std::unique_ptr<Communicator> nccl = MakeNccl(options, ranks, *backend, obstacle);
  Communicator& communicator = nccl ? *nccl : host;
  const bool is_osu = options.form == "osu";
  const std::vector<std::string> devices = Devices(ranks, *backend);
  if (ranks.is_root()) {
    const std::string what = fmt::format("ddlbench allreduce: {}", communicator.description());
    if (!nccl && !backend->is_host()) {
      messages << "ddlbench: sums are of host memory: "
               << (obstacle.empty() ? "--comm=mpi" : obstacle) << "\n";
    }
    if (is_osu) messages << "ddlbench: in the form of osu_allreduce -f; " << what << "\n";
    messages << std::flush;
    out << (is_osu ? FormatOsuHead() : FormatNcclHead(options, what, devices)) << std::flush;
  }
  AllReduceBench bench(communicator, *backend, options.max_bytes);
  std::vector<AllReduceTimes> all;
  for (const std::int64_t bytes : SizesOf(options)) {
    all.push_back(bench.Measure(bytes, options.warmup_iterations, options.iterations,
                                is_osu ? Waiting::kEach : Waiting::kAtTheEnd));
    if (!ranks.is_root()) continue;
    out << (is_osu ? FormatOsuRow(all.back()) : FormatNcclRow(all.back(), communicator.size()))
        << std::flush;
  }
  if (ranks.is_root() && !is_osu) out << FormatNcclTail(all, communicator.size()) << std::flush;
  const bool is_right =
      std::all_of(all.begin(), all.end(), [](const auto& times) { return times.wrong == 0; });
  if (!is_right && ranks.is_root()) messages << "ddlbench: some sums were wrong\n" << std::flush;
  return is_right ? EX_OK : EX_SOFTWARE;
}

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
