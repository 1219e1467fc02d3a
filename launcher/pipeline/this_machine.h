// SPDX-License-Identifier: Apache-2.0
//
// Which of the hosts of a job is the machine that ddlrun runs on.

#pragma once

#include <string>

#include "launcher/base/environment.h"

namespace launcher {

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
