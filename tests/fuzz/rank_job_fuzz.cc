// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "launcher/base/error.h"
#include "launcher/protocol/own_job.h"
#include "launcher/protocol/rank_job.h"

namespace {

constexpr int kRank = 1;

// What the shim reads of its rank is what the whole job says of it, where both can read the text.
void RequireSame(const launcher::OwnJob& own, const launcher::RankJob& job) {
  const launcher::RankPlan& rank = job.plan.ranks.at(kRank);
  const launcher::NodePlan& node = job.plan.nodes.at(static_cast<std::size_t>(rank.node));
  if (own.world_size != static_cast<int>(job.plan.ranks.size()) || own.node != rank.node ||
      own.local_rank != rank.local_rank ||
      own.local_world_size != static_cast<int>(node.ranks.size()) || own.gpus != node.gpus ||
      own.gpu != rank.gpu || own.cpus_per_rank != job.plan.cpus_per_rank.value_or(0) ||
      own.numa_os_index != rank.numa_os_index || own.cores != static_cast<int>(rank.cores.size()) ||
      std::string(own.host) != node.host.c_str()) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  static launcher::OwnJob own;
  const bool is_read = launcher::ReadOwnJob(text.c_str(), kRank, "0-1,3", &own);
  if (is_read && (own.node < 0 || own.node >= own.node_count)) std::abort();
  try {
    const launcher::RankJob job = launcher::DecodeRankJob(text);
    if (is_read) RequireSame(own, job);
    // What was read can be written, and read again.
    const launcher::RankJob again = launcher::DecodeRankJob(launcher::EncodeRankJob(job));
    if (again.plan.ranks.size() != job.plan.ranks.size()) std::abort();
  } catch (const launcher::LaunchError&) {
  }
  return 0;
}
