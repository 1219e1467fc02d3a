// SPDX-License-Identifier: Apache-2.0
//
// What every communicator must do, whatever it goes through: called by each of its ranks.

#pragma once

#include "trainer/comm/communicator.h"

namespace trainer {

// Sums whose terms and partial sums are small integers are exact in any order: no tolerance.
void ExpectExactSums(Communicator& comm);
// Several sums under way, larger than any chunk, finish in the order started.
void ExpectQueuedSums(Communicator& comm);
// Sums that do round have the same bits on all ranks, and again when repeated.
void ExpectEqualBits(Communicator& comm);
void ExpectHostValues(Communicator& comm);
void ExpectBroadcasts(Communicator& comm);

}  // namespace trainer
