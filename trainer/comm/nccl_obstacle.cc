// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/nccl_obstacle.h"

#include <fstream>
#include <map>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/comm/nccl_communicator.h"

namespace trainer {
namespace {

constexpr char kReason = '!';  // in front of a reason; else it is a GPU

// Tells machines apart, and is the same in all containers of one.
std::string Machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string GpuOrReason(const std::string& gpu) {
  if (gpu.empty()) return kReason + std::string("computes without a GPU");
  const std::string problem = NcclProblem();
  return problem.empty() ? Machine() + " " + gpu : kReason + problem;
}

}  // namespace

std::string NcclObstacle(Communicator& host, const std::string& gpu) {
  const std::vector<std::string> all = GatherTexts(host, GpuOrReason(gpu));
  std::map<std::string, std::size_t> users;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].front() == kReason) {
      return "rank " + std::to_string(rank) + ": " + all[rank].substr(1);
    }
    const auto [user, is_new] = users.emplace(all[rank], rank);
    if (!is_new) {
      return "ranks " + std::to_string(user->second) + " and " + std::to_string(rank) +
             " share a GPU";
    }
  }
  return "";
}

}  // namespace trainer
