// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/gpu_check.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/base/error.h"
#include "launcher/topology/gpus_of_node.h"
#include "support/number.h"

namespace launcher {

void CheckGpus(int planned, const std::string& host, const Environment& environment, int devices) {
  const std::string plan = "the plan counts on " + std::to_string(planned) + " here";
  for (const char* name : {"SLURM_GPUS_ON_NODE", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES"}) {
    const auto found = environment.find(name);
    if (found == environment.end() || found->second.empty()) continue;
    const std::string& value = found->second;
    const bool is_count = std::string(name) == "SLURM_GPUS_ON_NODE";
    const std::optional<int> count = support::WholeNumber<int>(value);
    if (is_count && !count) continue;
    const int here = is_count ? *count : CountGpuEntries(value.c_str());
    if (here == planned) continue;
    throw LaunchError(EX_CONFIG, std::string(name) + "=" + value + " on this node, but " + plan +
                                     ": ask for the same GPUs on every node "
                                     "(#SBATCH --gpus-per-node=N), or pass over this with "
                                     "--check=off");
  }
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  const bool are_slices = visible != environment.end() && AreGpuSlices(visible->second.c_str());
  if (devices > 0 && devices < planned && !are_slices) {
    throw LaunchError(EX_CONFIG, std::to_string(devices) + " GPU devices in /dev, but " + plan +
                                     ": a GPU of this node is lost, leave the node out with "
                                     "#SBATCH --exclude=" +
                                     host + " and tell its admin");
  }
}

bool TakeGrantedGpus(const std::string& granted, int node, LaunchPlan* plan) {
  std::vector<int> gpus;  // that the plan uses, in the order of the local ranks
  std::vector<std::pair<RankPlacement*, std::size_t>> ranks;
  for (const int number : plan->nodes[static_cast<std::size_t>(node)].ranks) {
    RankPlacement& rank = plan->ranks[static_cast<std::size_t>(number)];
    if (rank.gpu < 0) return false;
    const auto known = std::find(gpus.begin(), gpus.end(), rank.gpu);
    ranks.emplace_back(&rank, known - gpus.begin());
    if (known == gpus.end()) gpus.push_back(rank.gpu);
  }
  bool has_changed = false;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const int number = GpuNumberAt(granted.c_str(), static_cast<int>(i));
    if (number < 0) return false;
    has_changed = has_changed || number != gpus[i];
    gpus[i] = number;
  }
  for (const auto& [rank, index] : ranks) rank->gpu = gpus[index];
  return has_changed;
}

}  // namespace launcher
