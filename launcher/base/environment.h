// SPDX-License-Identifier: Apache-2.0
//
// The environment of a process as a value.  SnapshotEnvironment is the only function of the
// launcher that reads the process environment; everything else is given a value, and is pure.

#pragma once

#include <map>
#include <string>
#include <vector>

namespace launcher {

// Variables by name.
using Environment = std::map<std::string, std::string>;

// The environment of this process.  Entries that are not NAME=value are left out.
Environment SnapshotEnvironment();

// "NAME=value" for execve, in the order of the names.
std::vector<std::string> ToStrings(const Environment& environment);

// A variable's value, or `fallback` when it is empty or not set.
std::string ValueOr(const Environment& environment, const std::string& name,
                    const std::string& fallback);

// For lines that others may read.  "NAME=..." for "NAME=VALUE" whose value may be a secret, by its
// name (WANDB_API_KEY, HF_TOKEN, ...) or as a URL with a user or a text with "password=" in it; any
// other word as it is.  Pure.
std::string WithoutSecret(const std::string& word);

// SLURM_STEP_GPUS, or SLURM_JOB_GPUS: which GPUs of this node Slurm has granted, by the numbers of
// their device files (/dev/nvidia3).  "" where it has granted none.
std::string GrantedBySlurm(const Environment& environment);

// Without SCANCEL_* and SQUEUE_*: by such defaults of the user or the site scancel and
// squeue look at some jobs only, or wait for an answer.
Environment WithoutDefaultsOfSlurmTools(Environment environment);

// What ddlrun finds in its environment of somebody else's: of the job from within which this one
// was submitted, since sbatch hands its whole environment on and Slurm overwrites only what it sets
// itself; of the launch of which the caller is a rank.  Pure.

// Without the components of a heterogeneous job that is not the job of SLURM_JOB_ID.
Environment WithoutInheritedComponents(Environment environment);

// Without what an enclosing launch has set for its ranks and what is therefore nobody's wish: where
// they meet, how many threads they have, IBM's variables, the file of a heartbeat.  ddlrun's own
// values are known by the copies that it keeps of them (protocol/rank_variables.h): a variable that
// was set anew since then stays.  torchrun keeps no copies; where it meets goes with it.
Environment WithoutEnclosingLaunch(Environment environment);

}  // namespace launcher
