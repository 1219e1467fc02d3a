// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/shared_gpu_ranks.h"

#include <fstream>
#include <map>

namespace trainer {
namespace {

// Tells machines apart, and is the same in all containers of one.
std::string Machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace

std::vector<int> FirstRanksOfGpus(Communicator& communicator, const std::string& gpu) {
  const std::vector<std::string> gpus =
      GatherTexts(communicator, gpu.empty() ? "" : gpu + " of " + Machine());
  std::map<std::string, int> first_ranks;
  std::vector<int> firsts;
  for (const std::string& name : gpus) {
    const int rank = static_cast<int>(firsts.size());
    firsts.push_back(name.empty() ? rank : first_ranks.emplace(name, rank).first->second);
  }
  return firsts;
}

}  // namespace trainer
