// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/gpu_facts.h"

#include <algorithm>
#include <charconv>
#include <fstream>

#include "launcher/health/nvml.h"
#include "launcher/health/sorted_entries.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

// /proc/driver/nvidia/gpus/0004:04:00.0/information: "Model: \t\t Tesla V100-SXM2-16GB".
std::vector<FoundGpu> ReadProc(const fs::path& folder) {
  std::vector<FoundGpu> gpus;
  for (const fs::path& entry : SortedEntries(folder)) {
    FoundGpu& gpu = gpus.emplace_back();
    gpu.facts.pci_bus_id = entry.filename().string();
    std::ifstream file(entry / "information");
    std::string line;
    while (std::getline(file, line)) {
      const std::size_t colon = line.find(':');
      const std::size_t start = line.find_first_not_of(" \t", std::min(colon, line.size() - 1) + 1);
      if (colon == std::string::npos || start == std::string::npos) continue;
      if (line.starts_with("Model:")) gpu.facts.model = line.substr(start);
      if (line.starts_with("GPU UUID:")) gpu.uuid = line.substr(start);
    }
  }
  return gpus;
}

// /dev/nvidia0, /dev/nvidia1, ...
std::vector<FoundGpu> ReadDevices(const fs::path& folder) {
  const std::string start = "nvidia";
  std::vector<FoundGpu> gpus;
  for (const fs::path& entry : SortedEntries(folder)) {
    const std::string name = entry.filename().string();
    if (name.size() > start.size() && name.starts_with(start) &&
        name.find_first_not_of("0123456789", start.size()) == std::string::npos) {
      gpus.emplace_back();
    }
  }
  return gpus;
}

}  // namespace

void ReadGpuFacts(const GpuSources& sources, NodeFacts& facts) {
  const fs::path root = sources.root.empty() ? "/" : sources.root;
  std::vector<FoundGpu> found = ReadNvml(sources.nvml, facts.gpu_problem);
  facts.gpu_source = "NVML";
  if (found.empty()) {
    found = ReadProc(root / "proc/driver/nvidia/gpus");
    facts.gpu_source = "/proc";
  }
  if (found.empty()) {
    found = ReadDevices(root / "dev");
    facts.gpu_source = found.empty() ? "" : "/dev";
  }
  std::vector<std::string> uuids;
  for (const FoundGpu& gpu : found) uuids.push_back(gpu.uuid);
  facts.gpus.clear();
  if (sources.all_visible) {
    for (const FoundGpu& gpu : found) facts.gpus.push_back(gpu.facts);
    return;
  }
  for (const std::size_t index : VisibleGpus(sources.visible, uuids)) {
    facts.gpus.push_back(found[index].facts);
  }
}

std::vector<std::size_t> VisibleGpus(const std::string& visible,
                                     const std::vector<std::string>& uuids) {
  std::vector<std::size_t> gpus;
  std::size_t start = 0;
  while (start < visible.size()) {
    const std::size_t end = std::min(visible.find(',', start), visible.size());
    const std::string word = visible.substr(start, end - start);
    start = end + 1;
    std::size_t index = uuids.size();
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), index);
    if (error != std::errc() || stop != word.data() + word.size()) {
      const auto named = std::find_if(uuids.begin(), uuids.end(), [&word](const std::string& uuid) {
        return !word.empty() && uuid.starts_with(word);
      });
      index = static_cast<std::size_t>(named - uuids.begin());
    }
    if (index >= uuids.size()) break;
    gpus.push_back(index);
  }
  return gpus;
}

}  // namespace launcher
