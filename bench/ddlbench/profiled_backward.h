// SPDX-License-Identifier: Apache-2.0
//
// How long backward takes in each block of ResNet-50, by the profile of a training.

#pragma once

#include <string>
#include <string_view>

#include "scaling/resnet50.h"

namespace bench {

struct ProfiledBackward {
  scaling::BackwardTimes times = {};  // seconds of a step
  double share = 0;                   // of what all ops of a step take, the update among them
};

// `text`: of profile.json (doc/reference/benchmarks.md, Profile).  Throws
// trainer::Error(EX_DATAERR) naming `path` where it is none, or one of another network.  Pure.
ProfiledBackward ParseProfiledBackward(std::string_view text, const std::string& path);

// Throws as that one, and EX_NOINPUT.
ProfiledBackward ReadProfiledBackward(const std::string& path);

}  // namespace bench
