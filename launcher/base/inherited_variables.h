// SPDX-License-Identifier: Apache-2.0
//
// What ddlrun finds in its environment of somebody else's: of the job from within which this one
// was submitted, since sbatch hands its whole environment on and Slurm overwrites only what it sets
// itself; of the launch of which the caller is a rank.  Pure.

#pragma once

#include "launcher/base/environment.h"

namespace launcher {

// Without the components of a heterogeneous job that is not the job of SLURM_JOB_ID.
Environment WithoutInheritedComponents(Environment environment);

// Without what an enclosing launch has set for its ranks and what is therefore nobody's wish: where
// they meet, how many threads they have, IBM's variables, the file of a heartbeat.  ddlrun's own
// values are known by the copies that it keeps of them (protocol/rank_variables.h): a variable that
// was set anew since then stays.  torchrun keeps no copies; where it meets goes with it.
Environment WithoutEnclosingLaunch(Environment environment);

}  // namespace launcher
