// SPDX-License-Identifier: Apache-2.0
//
// A plan out of the user's own rankfile: who runs where.  Cores stay empty, since mpirun binds by
// the file itself.  Pure.

#pragma once

#include <string>

#include "launcher/plan/plan.h"

namespace launcher {

// `text` of the file `name`.  Throws LaunchError(EX_DATAERR) with line and column, and for a file
// without a rank.
Plan PlanFromRankfile(const std::string& text, const std::string& name);

}  // namespace launcher
