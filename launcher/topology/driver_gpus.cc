// SPDX-License-Identifier: Apache-2.0

#include "launcher/topology/driver_gpus.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

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
    }
  }
  return gpus;
}

}  // namespace launcher
