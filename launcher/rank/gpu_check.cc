// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/gpu_check.h"

#include <string>

#include "launcher/error.h"
#include "launcher/shim/gpus.h"

namespace launcher {

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
    const int here = is_count ? std::stoi(value) : CountGpuEntries(value.c_str());
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
