// SPDX-License-Identifier: Apache-2.0
//
// The rows of ddltraind's option table that old command lines have and that do nothing here.

#pragma once

#include <vector>

#include "trainer/options/options.h"

namespace trainer {

// For OptionTable, behind all others; the group of each begins with "Accepted".
std::vector<OptionRow> AcceptedOptions();

}  // namespace trainer
