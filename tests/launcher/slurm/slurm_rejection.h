// SPDX-License-Identifier: Apache-2.0
//
// What tests of Slurm's environment expect: a refusal, or a number that it does not tell.

#pragma once

#include "launcher/base/error.h"
#include "launcher/slurm/slurm_allocation.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {

// GPUs, slots and ranks that the environment does not tell.
inline constexpr int kUnknown = -1;

// The message, one line, with which `environment` is refused; "" where it is not.
inline std::string Rejection(const Environment& environment) {
  const std::string rejection =
      tests::Rejection<LaunchError>(EX_CONFIG, [&] { ReadSlurmAllocation(environment); });
  EXPECT_THAT(rejection, Not(HasSubstr("\n")));
  return rejection;
}

}  // namespace launcher
