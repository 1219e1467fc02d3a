// SPDX-License-Identifier: Apache-2.0

#include "bench/microbenchmarks/numa.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "rankfile/cpu_list.h"

namespace bench {
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
