// SPDX-License-Identifier: Apache-2.0
//
// What each rank says about itself, told to all of them.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"

namespace trainer {

// Letters of a text; what is longer is cut.
inline constexpr std::size_t kGatheredLetters = 128;

// Collective.  Every rank's `text`, in the order of the ranks.
std::vector<std::string> GatherTexts(Communicator& communicator, const std::string& text);

}  // namespace trainer
