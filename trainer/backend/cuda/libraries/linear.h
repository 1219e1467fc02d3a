// SPDX-License-Identifier: Apache-2.0
//
// The linear layer by cuBLASLt.  Its tensors are dense: src, weight and their gradients of the
// storage type, bias, dst and theirs fp32.

#pragma once

#include <memory>

#include "trainer/backend/ops.h"
#include "trainer/backend/plan_cache.h"

namespace trainer {

// On the current device.  Throws Error (EX_UNAVAILABLE) if cuBLASLt cannot work on it.
// `deterministic` also means that nothing is timed: which algorithm runs never depends on a clock.
std::unique_ptr<Linear> MakeCublasLinear(const LinearSpec& spec, bool tf32, bool deterministic,
                                         const DevicePlanCache& plans);

}  // namespace trainer
