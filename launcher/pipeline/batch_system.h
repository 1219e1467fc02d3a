// SPDX-License-Identifier: Apache-2.0
//
// The hosts that a batch system other than Slurm has given to the job: PBS Pro, OpenPBS and Torque
// (PBS_NODEFILE), and LSF (LSB_DJOB_HOSTFILE, LSB_MCPU_HOSTS); and a launcher that has started
// ddlrun.

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "launcher/allocation/allocation.h"
#include "launcher/base/environment.h"

namespace launcher {

// The job of PBS or LSF that `environment` is about, else nullopt, also in a rank of ddlrun. `read`
// reads a file.  A host has as many slots as lines; these may be ranks (mpiprocs of PBS Pro) or
// cores (ppn of Torque, LSF). The host from which LSF starts jobs on some systems, first in the
// list with one slot where all others have more, is left out.  Throws LaunchError: EX_CONFIG where
// Flux has given several nodes, whose names its variables do not tell; EX_DATAERR where a list
// cannot be read; and what `read` throws.
std::optional<Allocation> ReadBatchAllocation(
    const Environment& environment,
    const std::function<std::string(const std::string& path)>& read);

// "" unless ddlrun itself is one of several processes of mpirun or mpiexec, each of which starts
// all ranks: then what to write.  A launch that a rank of ddlrun starts is meant so.  Pure.
std::string DescribeEnclosingLaunch(const Environment& environment);

}  // namespace launcher
