// SPDX-License-Identifier: Apache-2.0
//
// What every communicator must do, whatever it goes through: called by each of its ranks.

#pragma once

#include "trainer/comm/communicator.h"

namespace trainer {

// Sums of several sizes, started on `stream` and waited for there: exact where they can be, several
// under way in the order started, the same bits on all ranks and again when repeated; host values;
// broadcasts.
void ExpectACommunicator(Communicator& comm, Stream& stream);

}  // namespace trainer
