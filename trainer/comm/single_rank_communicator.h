// SPDX-License-Identifier: Apache-2.0
//
// A world of one: every sum is what it was.

#pragma once

#include <memory>

#include "trainer/comm/communicator.h"

namespace trainer {

std::unique_ptr<Communicator> MakeSingleCommunicator();

}  // namespace trainer
