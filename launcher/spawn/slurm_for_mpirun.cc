// SPDX-License-Identifier: Apache-2.0

#include "launcher/spawn/slurm_for_mpirun.h"

#include "rankfile/hostlist.h"

namespace launcher {

std::map<std::string, std::string> SlurmVariablesForMpirun(const std::vector<HostSlots>& hosts) {
  std::vector<std::string> names;
  std::string tasks;
  for (std::size_t i = 0; i < hosts.size();) {
    std::size_t end = i;
    while (end < hosts.size() && hosts[end].slots == hosts[i].slots)
      names.push_back(hosts[end++].host);
    tasks += (tasks.empty() ? "" : ",") + std::to_string(hosts[i].slots);
    if (end - i > 1) tasks += "(x" + std::to_string(end - i) + ")";
    i = end;
  }
  return {{"SLURM_NODELIST", rankfile::CompressHostlist(names)}, {"SLURM_TASKS_PER_NODE", tasks}};
}

}  // namespace launcher
