// SPDX-License-Identifier: Apache-2.0
//
// How a network's weights lie in its flat memory, which ranks sum element by element: a back end
// may choose another layout on another processor, or for another number of threads.

#pragma once

#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/core/consistency_item.h"
#include "trainer/model/network.h"

namespace trainer {

// One fact for each parameter that is trained: where it begins, and a fingerprint of the order of
// its elements.  Waits for `stream`.  Takes as long as exporting the weights once.
std::vector<ConsistencyItem> WeightLayout(const Network& network, Backend& backend, Stream& stream);

}  // namespace trainer
