// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/runtime/ranges.h"

#include <nvtx3/nvToolsExt.h>

namespace trainer {

void BeginProfilerRange(const char* name) { nvtxRangePushA(name); }

void EndProfilerRange() { nvtxRangePop(); }

}  // namespace trainer
