// SPDX-License-Identifier: Apache-2.0
//
// What a run would do.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/train/config.h"

namespace trainer {

// For --dry_run: network, batch, steps, learning rates, one line each.  `samples` of the set
// that it is about.
std::vector<std::string> DescribeRun(const TrainConfig& config, int ranks, std::int64_t samples);

}  // namespace trainer
