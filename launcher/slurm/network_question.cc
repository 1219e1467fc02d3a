// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/network_question.h"

#include <vector>

#include "launcher/slurm/network_topology.h"
#include "launcher/system/files.h"

namespace launcher {

NetworkQuestion::NetworkQuestion(const Environment& environment, bool of_partition)
    : environment_(environment) {
  environment_.erase("SLURM_TOPO_LEN");  // would cut the lines short
  const std::string scontrol = FindProgram("scontrol", environment_);
  if (scontrol.empty()) return;
  const auto show = [&](const std::vector<std::string>& what) {
    std::vector<std::string> words = {scontrol, "show"};
    words.insert(words.end(), what.begin(), what.end());
    return std::make_unique<CommandOutput>(words, environment_);
  };
  topology_ = show({"topology"});
  const std::string partition = ValueOr(environment_, "SLURM_JOB_PARTITION", "");
  if (of_partition && !partition.empty()) partition_ = show({"partition", partition});
}

ScontrolAnswer NetworkQuestion::Wait() {
  if (partition_ != nullptr && partition_->Wait(kTimeoutWithScontrol)) {
    const std::string own = TopologyOfPartition(partition_->text());
    if (!own.empty()) return RunScontrol({"show", "topology", own}, environment_);
  }
  return AnswerOfScontrol(topology_.get());
}

bool HasFlatTopology(const Environment& environment) {
  return ValueOr(environment, "SLURM_TOPOLOGY_ADDR_PATTERN", "") == "node";
}

}  // namespace launcher
