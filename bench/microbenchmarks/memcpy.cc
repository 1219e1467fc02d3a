// SPDX-License-Identifier: Apache-2.0

#include "bench/microbenchmarks/memcpy.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>

#include "bench/base/diagnostics.h"
#include "bench/base/statistics.h"
#include "rankfile/cpu_list.h"
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
  return static_cast<double>(options.bytes) / MedianOf(seconds) / 1e9;
}

}  // namespace

void CheckCopiesOptions(const MemcpyBenchOptions& options) {
  constexpr std::int64_t kMaxBytes = std::int64_t{1} << 34;
  if (options.bytes < 1 || options.bytes > kMaxBytes) {
    throw Error(EX_USAGE, fmt::format("--bytes={} must be from 1 to 16G", options.bytes));
  }
  constexpr int kMaxRounds = 100'000;
  RequireRange("--rounds", options.rounds, 1, kMaxRounds);
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

namespace {

// Of CPUs and of NUMA nodes.  No machine has more, and the kernel refuses a mask that is smaller
// than its own.
constexpr std::size_t kMaskBits = 8192;
constexpr std::size_t kMaskBytes = kMaskBits / 8;
constexpr std::size_t kWordBits = 8 * sizeof(unsigned long);

cpu_set_t* MaskOf(std::vector<unsigned long>& words) {
  return reinterpret_cast<cpu_set_t*>(words.data());
}

// linux/mempolicy.h, for which glibc has no functions.
constexpr int kLocalMemory = 0;  // MPOL_DEFAULT

}  // namespace

std::vector<NumaCpus> ReadNumaCpus(const std::string& root) {
  std::vector<NumaCpus> nodes;
  std::error_code error;
  std::filesystem::directory_iterator entry(root + "/sys/devices/system/node", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::filesystem::path path = entry->path();
    const std::string name = path.filename().string();
    constexpr std::string_view kStart = "node";
    NumaCpus node;
    const char* const end = name.data() + name.size();
    if (!name.starts_with(kStart)) continue;
    const auto number = std::from_chars(name.data() + kStart.size(), end, node.number);
    if (number.ec != std::errc{} || number.ptr != end) continue;
    std::ifstream file(path / "cpulist");
    const std::string list{std::istreambuf_iterator<char>(file), {}};
    node.cpus = rankfile::ParseCpuList(list, (path / "cpulist").string());
    // The memory of a GPU of an AC922 is a node, too.
    if (!node.cpus.empty()) nodes.push_back(node);
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const NumaCpus& a, const NumaCpus& b) { return a.number < b.number; });
  return nodes;
}

std::string HostBridgeOf(const std::string& root, const std::string& device) {
  std::string name = device;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  std::error_code error;
  const std::filesystem::path path =
      std::filesystem::canonical(root + "/sys/bus/pci/devices/" + name, error);
  if (error || device.empty()) return "-";
  for (const std::filesystem::path& part : path) {  // .../pci0000:3a/0000:3a:00.0/0000:3b:00.0
    const std::string text = part.string();
    if (text.starts_with("pci") && text.find(':') != std::string::npos) return text.substr(3);
  }
  return "-";
}

OnCpus::OnCpus(const std::vector<int>& cpus)
    : cpus_before_(kMaskBits / kWordBits), nodes_before_(kMaskBits / kWordBits) {
  if (::sched_getaffinity(0, kMaskBytes, MaskOf(cpus_before_)) != 0) return;
  std::vector<unsigned long> mask(cpus_before_.size());
  for (const int cpu : cpus) {
    const auto bit = static_cast<std::size_t>(cpu);
    if (bit < kMaskBits) mask[bit / kWordBits] |= 1UL << bit % kWordBits;
  }
  are_allowed_ = ::sched_setaffinity(0, kMaskBytes, MaskOf(mask)) == 0;
  // ddlrun has ranks prefer the memory of where they are bound. A container may allow neither.
  ::syscall(SYS_get_mempolicy, &policy_before_, nodes_before_.data(), kMaskBits, nullptr, 0);
  if (are_allowed_) ::syscall(SYS_set_mempolicy, kLocalMemory, nullptr, 0);
}

OnCpus::~OnCpus() {
  if (!are_allowed_) return;
  ::sched_setaffinity(0, kMaskBytes, MaskOf(cpus_before_));
  const bool has_nodes = policy_before_ != kLocalMemory;
  ::syscall(SYS_set_mempolicy, policy_before_, has_nodes ? nodes_before_.data() : nullptr,
            has_nodes ? kMaskBits : 0);
}

}  // namespace bench
