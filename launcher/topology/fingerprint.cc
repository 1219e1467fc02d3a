// SPDX-License-Identifier: Apache-2.0
#include "launcher/topology/fingerprint.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

namespace launcher {
namespace {

constexpr std::size_t kMaxCpus = 8192;

// A file of sysfs is one line.
std::string ReadLine(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::array<char, 4096> text = {};
  const ssize_t got = read(fd, text.data(), text.size());
  close(fd);
  std::string line(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  line.resize(std::min(line.find('\n'), line.size()));
  return line;
}

std::vector<std::string> Names(const std::string& folder) {
  std::vector<std::string> names;
  DIR* directory = opendir(folder.c_str());
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

// In hexadecimal, lowest CPU first.
std::string AllowedCpus() {
  const std::size_t bytes = CPU_ALLOC_SIZE(kMaxCpus);
  cpu_set_t* set = CPU_ALLOC(kMaxCpus);
  CPU_ZERO_S(bytes, set);
  std::string text;
  if (sched_getaffinity(0, bytes, set) == 0) {
    for (std::size_t first = 0; first < kMaxCpus; first += 4) {
      unsigned digit = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        digit |= CPU_ISSET_S(first + i, bytes, set) ? 1U << i : 0U;
      }
      text += "0123456789abcdef"[digit];
    }
    text.resize(text.find_last_not_of('0') + 1);
  }
  CPU_FREE(set);
  return text;
}

bool IsNodeName(const std::string& name) {
  return name.starts_with("node") && name.size() > 4 &&
         name.find_first_not_of("0123456789", 4) == std::string::npos;
}

}  // namespace

std::string TopologyFingerprint(const std::string& root) {
  const std::string cpus = AllowedCpus();
  const std::string system = root + "/sys/devices/system";
  std::string nodes;
  for (const std::string& name : Names(system + "/node")) {
    if (!IsNodeName(name)) continue;
    // Memory of a GPU on POWER9 is a node without CPUs, of which a plan says nothing.
    const std::string list = ReadLine(system + "/node/" + name + "/cpulist");
    if (!list.empty()) nodes += " " + name + "=" + list;
  }
  const std::string online = ReadLine(system + "/cpu/online");
  const std::string threads = ReadLine(system + "/cpu/cpu0/topology/thread_siblings_list");
  if (cpus.empty() || online.empty()) return "unknown " + std::to_string(getpid());
  std::string gpus;
  const std::string devices = root + "/sys/bus/pci/devices/";
  for (const std::string& address : Names(devices)) {
    if (ReadLine(devices + address + "/vendor") != "0x10de") continue;
    if (!ReadLine(devices + address + "/class").starts_with("0x03")) continue;
    gpus += " " + address + "@" + ReadLine(devices + address + "/numa_node");
  }
  return "allowed=" + cpus + " online=" + online + " threads=" + threads + nodes + gpus;
}

}  // namespace launcher
