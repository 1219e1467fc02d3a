// SPDX-License-Identifier: Apache-2.0
//
// The environment of ddlrun as a value, and which of it belongs to ranks.  SnapshotEnvironment is
// the only reader of the process environment in the launcher; the rest is pure.

#pragma once

#include <map>
#include <string>
#include <vector>

namespace launcher {

using Environment = std::map<std::string, std::string>;

// The environment of this process.  Entries that are not NAME=value are left out.
Environment SnapshotEnvironment();

// "NAME=value" for execve, in the order of the names.
std::vector<std::string> ToStrings(const Environment& environment);

// Whether `name` says who an enclosing rank is (OMPI_COMM_WORLD_*, PMIX_*, SLURM_PROCID, RANK,
// ...): ddlrun inside another launcher, or in a batch script, which Slurm numbers as task 0.  Never
// given to what ddlrun starts: a rank would take it for its own.
bool IsRankIdentity(const std::string& name);

// Whether mpirun must carry `name` to other nodes (-x).  Everything is, except: rank identities;
// what describes this shell or login (_ OLDPWD PWD SHLVL HOSTNAME HOST LOGNAME USER HOME SHELL TERM
// DISPLAY XAUTHORITY, SSH_*, XDG_*, DBUS_*, BASH_FUNC_* and other names that are not identifiers);
// what mpirun and Slurm set anew on each node (OMPI_*, PRTE_*, ORTE_*, PMIX_*, SLURMD_*, SLURM_*
// but SLURM_JOB_ID, _JOB_NAME, _ARRAY_*, _RESTART_COUNT, _SUBMIT_*); the GPUs that this node was
// given (CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES GPU_DEVICE_ORDINAL).  A denied variable can
// still be asked for by -x.
bool IsForwarded(const std::string& name);

}  // namespace launcher
