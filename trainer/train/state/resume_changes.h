// SPDX-License-Identifier: Apache-2.0
//
// What a run that goes on says of everything that is not as its checkpoint has it.  Pure.

#pragma once

#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"

namespace trainer {

// One text for each thing that has changed, "ranks 2 (now 3)", with what comes of it behind a
// semicolon where that is not plain.  `now`: the state in which the run goes on.  What one of the
// two does not know, as older versions noted less, is left out.
std::vector<std::string> ChangesSince(const CheckpointState& then, const CheckpointState& now);

}  // namespace trainer
