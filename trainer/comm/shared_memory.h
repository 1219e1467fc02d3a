// SPDX-License-Identifier: Apache-2.0
//
// Ranks of one machine that meet in a file of the job's private run directory, mapped by all of
// them. The file is created by rank 0 (mode 0600) and unlinked as soon as all have mapped it.
//
// Sums are taken in the order of the ranks, so the bits are the same on every rank and in every
// run. A rank that dies, leaves or aborts while others wait for it is noticed within a second and
// named in the Error(EX_UNAVAILABLE) that the others get.

#pragma once

#include <memory>

#include "trainer/comm/factory.h"

namespace trainer {

// Throws Error as MakeCommunicator does.  REQUIRES: 0 <= rank < size <= kMaxLocalRanks.
std::unique_ptr<Communicator> MakeSharedMemoryCommunicator(const CommOptions& options);

inline constexpr int kMaxLocalRanks = 256;

}  // namespace trainer
