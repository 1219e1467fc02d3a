// SPDX-License-Identifier: Apache-2.0
//
// What a job has of the job from within which it was submitted: sbatch hands its whole environment
// on, and Slurm overwrites only what it sets itself.  Pure.

#pragma once

#include "launcher/base/environment.h"

namespace launcher {

// Without the components of a heterogeneous job that is not the job of SLURM_JOB_ID.
Environment WithoutInheritedComponents(Environment environment);

}  // namespace launcher
