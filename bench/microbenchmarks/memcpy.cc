// SPDX-License-Identifier: Apache-2.0

#include "bench/microbenchmarks/memcpy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>

#include "bench/microbenchmarks/numa.h"
#include "trainer/backend/registry.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using trainer::Backend;
using trainer::Communicator;
using trainer::Error;

double Rate(const MemcpyBenchOptions& options, trainer::Stream& stream,
            const std::function<void()>& before, const std::function<void()>& copy) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  // The first is not counted: pages are new to it.
  for (int round = -1; round < options.rounds; ++round) {
    before();
    const auto start = Clock::now();
    copy();
    stream.Synchronize();
    const std::chrono::duration<double> spent = Clock::now() - start;
    if (round >= 0) seconds.push_back(std::max(spent.count(), 1e-9));
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return static_cast<double>(options.bytes) / *middle / 1e9;
}

}  // namespace

void CheckCopiesOptions(const MemcpyBenchOptions& options) {
  constexpr std::int64_t kMaxBytes = std::int64_t{1} << 34;
  if (options.bytes < 1 || options.bytes > kMaxBytes) {
    throw Error(EX_USAGE, fmt::format("--bytes={} must be from 1 to 16G", options.bytes));
  }
  constexpr int kMaxRounds = 100'000;
  if (options.rounds < 1 || options.rounds > kMaxRounds) {
    throw Error(EX_USAGE,
                fmt::format("--rounds={} must be from 1 to {}", options.rounds, kMaxRounds));
  }
}

CopyRates MeasureMemcpy(const MemcpyBenchOptions& options, Backend& backend,
                        const std::function<void()>& before) {
  const auto bytes = static_cast<std::size_t>(options.bytes);
  const std::unique_ptr<trainer::Stream> stream = backend.MakeStream();
  const trainer::Buffer device = backend.AllocateDevice(bytes);
  const trainer::Buffer host = backend.AllocateHost(bytes);
  std::memset(host.data(), 1, bytes);
  CopyRates rates;
  rates.to_device = Rate(options, *stream, before,
                         [&] { backend.CopyToDevice(device.data(), host.data(), bytes, *stream); });
  rates.to_host = Rate(options, *stream, before,
                       [&] { backend.CopyToHost(host.data(), device.data(), bytes, *stream); });
  return rates;
}

std::string FormatCopyRow(int rank, const std::string& host, const std::string& device,
                          const std::string& bridge, const std::string& from,
                          const CopyRates& rates) {
  return fmt::format("{:6}  {:<16}  {:<12}  {:<7}  {:>5}  {:>9.2f}  {:>9.2f}\n", rank, host, device,
                     bridge, from, rates.to_device, rates.to_host);
}

int RunCopies(const MemcpyBenchOptions& options, Ranks& ranks, std::ostream& out) {
  CheckCopiesOptions(options);
  Communicator& communicator = ranks.communicator();
  trainer::BackendOptions backend_options;
  backend_options.local_rank = ranks.self().local_rank;
  const std::unique_ptr<Backend> backend = trainer::MakeBackend(options.backend, backend_options);
  const std::string host = ranks.host();
  const std::string device = backend->device_id().empty() ? "-" : backend->device_id();
  const std::string bridge = HostBridgeOf("", backend->device_id());
  const auto print = [&](const std::string& from, const std::optional<CopyRates>& rates) {
    const std::vector<std::string> rows = trainer::GatherTexts(
        communicator,
        rates ? FormatCopyRow(ranks.self().rank, host, device, bridge, from, *rates) : "");
    if (!ranks.is_root()) return;
    for (const std::string& row : rows) out << row;
    out << std::flush;
  };
  if (ranks.is_root()) {
    out << fmt::format("# ddlbench copies: {} bytes, the median of {} copies each way, GB/s; {}\n",
                       options.bytes, options.rounds, backend->description())
        << "#  rank  host              device        bridge    from  to device    to host\n"
        << std::flush;
  }
  print("all", MeasureMemcpy(options, *backend, [&] { communicator.Barrier(); }));

  std::vector<NumaCpus> nodes = ReadNumaCpus("");
  if (nodes.size() < 2) nodes.clear();  // nothing to choose from
  // Hosts may differ: all ranks meet as often as the largest host has ranks and nodes.
  std::array<double, 2> max = {static_cast<double>(nodes.size()),
                               static_cast<double>(ranks.self().local_world_size)};
  communicator.AllReduceMax(max);
  for (int place = -1; place < static_cast<int>(max[0]); ++place) {
    const bool is_bound = place < 0;
    const auto node = static_cast<std::size_t>(std::max(place, 0));
    std::optional<CopyRates> rates;
    for (int turn = 0; turn < static_cast<int>(max[1]); ++turn) {
      if (turn == ranks.self().local_rank && (is_bound || node < nodes.size())) {
        const OnCpus there(is_bound ? std::vector<int>{} : nodes[node].cpus);
        if (is_bound || there.are_allowed()) rates = MeasureMemcpy(options, *backend, [] {});
      }
      communicator.Barrier();
    }
    print(is_bound              ? "bound"
          : node < nodes.size() ? std::to_string(nodes[node].number)
                                : "",
          rates);
  }
  return EX_OK;
}

}  // namespace bench
