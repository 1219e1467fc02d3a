// SPDX-License-Identifier: Apache-2.0
//
// The first step of the pipeline: which nodes the ranks may run on.

#pragma once

#include <optional>
#include <string>

#include "launcher/allocation/allocation.h"
#include "launcher/base/environment.h"
#include "launcher/cli/options.h"

namespace launcher {

// What Slurm has granted (ReadSlurmAllocation); nullopt outside of Slurm.  With --accelerators 0 it
// does not matter which GPUs CUDA_VISIBLE_DEVICES leaves.
std::optional<Allocation> ReadJob(const Options& options, Environment environment);

// Inside Slurm the nodes of the job, of which -H and -hostfile choose some; outside of Slurm the
// hosts of -H or -hostfile, else those of PBS or LSF, else this machine.  With `may_leave_job`,
// hosts that are not all of the job are taken as outside of Slurm: mpirun reaches them by ssh.
// Throws LaunchError.
Allocation ReadAllocation(const Options& options, const Environment& environment,
                          bool may_leave_job);

// Which of the hosts of a job is the machine that ddlrun runs on.

// As gethostname says it, even if that is no name of a host ("(none)"); "" where it says nothing.
std::string NameOfKernel();
// The same, but "localhost" where it is no name of a host.
std::string HostName();

// Whether this machine finds an address for `host`, in a file or by a name server.
bool IsKnownName(const std::string& host);

// Whether `host` is Slurm's name of this node, its host name (with or without the domain), a name
// or an address of the loopback, or an address of one of its interfaces.  Where this machine does
// not know its own domain, a name with one is looked up, once: gpu1.a.example and gpu1.b.example
// both begin like gpu1.  For one thread.
bool IsThisMachine(const std::string& host, const Environment& environment);

}  // namespace launcher
