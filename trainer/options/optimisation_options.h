// SPDX-License-Identifier: Apache-2.0
//
// The rows of ddltraind's option table that say how it learns.

#pragma once

#include <vector>

#include "trainer/options/options.h"

namespace trainer {

// For OptionTable: the group "Optimisation".
std::vector<OptionRow> OptimisationOptions();

}  // namespace trainer
