// SPDX-License-Identifier: Apache-2.0
//
// Whether the ranks of this job can sum gradients by NCCL: the same answer on all of them.

#pragma once

#include <string>

#include "trainer/comm/communicator.h"

namespace trainer {

// Collective.  `gpu`: Backend::device_id() of this rank; "" if it computes without one.  Returns
// "ranks 0 and 1 share a GPU", "rank 2: computes without a GPU", "rank 0: NCCL cannot be loaded:
// ...", of the first rank with a reason against it; "" if there is none.
std::string NcclObstacle(Communicator& host, const std::string& gpu);

}  // namespace trainer
