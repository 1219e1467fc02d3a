// SPDX-License-Identifier: Apache-2.0
//
// What to write in place of an option of another launcher that ddlrun has no option for: torchrun,
// accelerate, deepspeed, srun, mpirun of Open MPI, Hydra.  Names that mean the same as an option of
// ours are accepted: OptionSpec::also.  Pure.

#pragma once

#include <string>

namespace launcher {

// `name` has no dashes in front, and '-' for '_'.  "" for a name that is of none of them.
std::string AnswerToOtherLauncher(const std::string& name);

}  // namespace launcher
