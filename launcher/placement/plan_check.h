// SPDX-License-Identifier: Apache-2.0
//
// Checks the invariants of plan.h.

#pragma once

#include <string>

#include "launcher/placement/launch_plan.h"

namespace launcher {

// The first broken invariant in words, or "".  `gpus_shared`: two ranks may have one GPU.
std::string FindPlanError(const LaunchPlan& plan, bool gpus_shared);

}  // namespace launcher
