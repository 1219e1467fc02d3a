// SPDX-License-Identifier: Apache-2.0
//
// Whether the ranks of this job can sum gradients by NCCL: the same answer on all of them.

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "trainer/comm/communicator.h"
#include "trainer/comm/nccl_communicator.h"

namespace trainer {

// NCCL's variable that lets ranks share a GPU, from 2.30 on.  It has to be set for all ranks, also
// for those that have a GPU of their own.
inline constexpr char kMultiRankVariable[] = "NCCL_MULTI_RANK_GPU_ENABLE";

// What keeps NCCL `version` ("2.28.9") from ranks that share a GPU: "NCCL_MULTI_RANK_GPU_ENABLE=1
// lets them, from NCCL 2.30 on; this is 2.28.9"; "" if nothing does.  `multi_rank`: the value of
// that variable, read as NCCL does: a whole number (0x1 and 01 are ones, too), any but 0 for yes.
std::string SharingObstacle(const std::optional<std::string>& multi_rank,
                            const std::string& version);

// What a rank has for NCCL.
struct NcclRank {
  std::string gpu;                                     // Backend::device_id(); "" without one
  std::optional<std::string> multi_rank;               // of its environment, as above
  std::function<std::string()> version = NcclVersion;  // asked for where ranks share a GPU
};

// Collective.  Returns "rank 2: computes without a GPU", "rank 0: NCCL cannot be loaded: ...", of
// the first rank with a reason against it; else "ranks 0 and 1 share a GPU; ..." with what keeps
// NCCL from them, behind "rank 1: " where that is not so on all ranks; "" if NCCL can be.
std::string NcclObstacle(Communicator& host, const NcclRank& own);

}  // namespace trainer
