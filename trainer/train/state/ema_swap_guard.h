// SPDX-License-Identifier: Apache-2.0
//
// Evaluations and exports of a training that keeps moving averages of its weights (--ema) are of
// the averages; the training goes on with the weights.

#pragma once

#include <functional>

#include "trainer/model/network.h"

namespace trainer {

// Calls `use` with the averages instead of weights and statistics, which are then as before, bit
// for bit; meanwhile host memory holds them.  Without averages it just calls.  What `use` throws
// leaves the averages there: such a run is over.
void SwapInEma(Network& network, Stream& stream, const std::function<void()>& use);

}  // namespace trainer
