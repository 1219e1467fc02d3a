// SPDX-License-Identifier: Apache-2.0

#include "launcher/topology/driver_gpus.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "support/number.h"

namespace launcher {

// /proc/driver/nvidia/gpus/0004:04:00.0/information: "Model: \t\t Tesla V100-SXM2-16GB".
std::vector<DriverGpu> ReadDriverGpus(const std::string& root) {
  namespace fs = std::filesystem;
  std::set<fs::path> directories;
  std::error_code error;
  for (fs::directory_iterator entry(root + "/proc/driver/nvidia/gpus", error), end;
       !error && entry != end; entry.increment(error)) {
    directories.insert(entry->path());
  }
  std::vector<DriverGpu> gpus;
  for (const fs::path& directory : directories) {
    DriverGpu& gpu = gpus.emplace_back();
    gpu.pci_bus_id = directory.filename().string();
    std::ifstream file(directory / "information");
    for (std::string line; std::getline(file, line);) {
      const std::size_t colon = line.find(':');
      const std::size_t start = line.find_first_not_of(" \t", std::min(colon, line.size() - 1) + 1);
      if (colon == std::string::npos || start == std::string::npos) continue;
      if (line.starts_with("Model:")) gpu.model = line.substr(start);
      if (line.starts_with("GPU UUID:")) gpu.uuid = line.substr(start);
      if (line.starts_with("Device Minor:")) {
        gpu.minor = support::WholeNumber<int>(line.substr(start)).value_or(-1);
      }
    }
  }
  return gpus;
}

void OrderByDeviceFile(const std::vector<DriverGpu>& known, NodeTopology* node) {
  constexpr int kMaxGpus = 1024;
  std::vector<Gpu> ordered;
  for (const Gpu& gpu : node->gpus) {
    const auto same = std::find_if(known.begin(), known.end(), [&gpu](const DriverGpu& candidate) {
      return candidate.pci_bus_id == gpu.pci_bus_id;
    });
    if (same == known.end() || same->minor < 0 || same->minor >= kMaxGpus) return;
    const auto place = static_cast<std::size_t>(same->minor);
    if (place >= ordered.size()) ordered.resize(place + 1);
    ordered[place] = gpu;
  }
  node->gpus = std::move(ordered);
}

}  // namespace launcher
