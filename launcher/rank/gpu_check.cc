// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/gpu_check.h"

#include <dirent.h>

#include <algorithm>
#include <string>

#include "launcher/error.h"

namespace launcher {
namespace {

// Entries of a list such as "0,1" or "GPU-3f2a,GPU-77b0"; "0-3" counts as four.
int CountEntries(const std::string& list) {
  int count = 0;
  std::size_t start = 0;
  while (start < list.size()) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    const std::string entry = list.substr(start, end - start);
    const std::size_t dash = entry.find('-');
    const bool is_range = dash != std::string::npos && dash > 0 &&
                          entry.find_first_not_of("0123456789-") == std::string::npos &&
                          dash + 1 < entry.size() && entry.size() < 12;
    count += is_range ? std::stoi(entry.substr(dash + 1)) - std::stoi(entry) + 1 : 1;
    start = end + 1;
  }
  return count;
}

}  // namespace

int CountGpuDevices() {
  constexpr std::string_view kPrefix = "nvidia";
  DIR* directory = opendir("/dev");
  if (directory == nullptr) return 0;
  int count = 0;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
        name.find_first_not_of("0123456789", kPrefix.size()) == std::string_view::npos) {
      ++count;
    }
  }
  closedir(directory);
  return count;
}

void CheckGpus(int planned, const std::string& host, const Environment& environment, int devices) {
  const std::string plan = "the plan counts on " + std::to_string(planned) + " here";
  for (const char* name : {"SLURM_GPUS_ON_NODE", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES"}) {
    const auto found = environment.find(name);
    if (found == environment.end() || found->second.empty()) continue;
    const std::string& value = found->second;
    const bool is_count = std::string(name) == "SLURM_GPUS_ON_NODE";
    const bool is_number =
        value.size() < 6 && value.find_first_not_of("0123456789") == std::string::npos;
    if (is_count && !is_number) continue;
    const int here = is_count ? std::stoi(value) : CountEntries(value);
    if (here == planned) continue;
    throw LaunchError(EX_CONFIG, std::string(name) + "=" + value + " on this node, but " + plan +
                                     ": ask for the same GPUs on every node "
                                     "(#SBATCH --gpus-per-node=N), or pass over this with "
                                     "--check=off");
  }
  if (devices > 0 && devices < planned) {
    throw LaunchError(EX_CONFIG, std::to_string(devices) + " GPU devices in /dev, but " + plan +
                                     ": a GPU of this node is lost, leave the node out with "
                                     "#SBATCH --exclude=" +
                                     host + " and tell its admin");
  }
}

}  // namespace launcher
