// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/nccl_obstacle.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <utility>
#include <vector>

#include "trainer/comm/communicator.h"

namespace trainer {
namespace {

constexpr std::pair kFirstThatShares(2, 30);

// As NCCL reads its variables: what is not a number, and one that is too large, are as if not set.
bool IsOn(const std::optional<std::string>& multi_rank) {
  if (!multi_rank) return false;
  errno = 0;
  const long long number = std::strtoll(multi_rank->c_str(), nullptr, 0);
  return errno == 0 && number != 0;
}

bool LetsRanksShare(const std::string& version) {
  const char* end = version.data() + version.size();
  std::pair number(0, 0);
  const char* point = std::from_chars(version.data(), end, number.first).ptr;
  if (point != end) std::from_chars(point + 1, end, number.second);
  return number >= kFirstThatShares;
}

// "rank 2: REASON" of the first rank that has one; without "rank 2: " where `is_of_all` and all
// have the same.
std::string FirstReason(const std::vector<std::string>& reasons, bool is_of_all) {
  const auto has_one = [](const std::string& reason) { return !reason.empty(); };
  const auto first = std::find_if(reasons.begin(), reasons.end(), has_one);
  if (first == reasons.end()) return "";
  const auto are_same = std::count(reasons.begin(), reasons.end(), *first);
  if (is_of_all && are_same == std::ssize(reasons)) return *first;
  return "rank " + std::to_string(first - reasons.begin()) + ": " + *first;
}

}  // namespace

std::string SharingObstacle(const std::optional<std::string>& multi_rank,
                            const std::string& version) {
  const bool is_on = IsOn(multi_rank);
  const bool is_new = LetsRanksShare(version);
  if (is_on && is_new) return "";
  if (is_on) return "NCCL lets them from 2.30 on; this is " + version;
  const std::string advice = std::string(kMultiRankVariable) + "=1 lets them";
  return is_new ? advice : advice + ", from NCCL 2.30 on; this is " + version;
}

std::string NcclObstacle(Communicator& host, const NcclRank& own) {
  const std::string reason = FirstReason(
      GatherTexts(host, own.gpu.empty() ? "computes without a GPU" : NcclProblem()), false);
  if (!reason.empty()) return reason;
  const std::vector<int> firsts = FirstRanksOfGpus(host, own.gpu);
  std::size_t rank = 0;
  while (rank < firsts.size() && firsts[rank] == static_cast<int>(rank)) ++rank;
  if (rank == firsts.size()) return "";
  const std::string sharing =
      FirstReason(GatherTexts(host, SharingObstacle(own.multi_rank, own.version())), true);
  if (sharing.empty()) return "";
  return "ranks " + std::to_string(firsts[rank]) + " and " + std::to_string(rank) +
         " share a GPU; " + sharing;
}

}  // namespace trainer
