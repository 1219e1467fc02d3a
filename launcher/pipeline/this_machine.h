// SPDX-License-Identifier: Apache-2.0
//
// Which of the hosts of a job is the machine that ddlrun runs on.

#pragma once

#include <string>

#include "launcher/base/environment.h"

namespace launcher {

// As gethostname says it; "localhost" where it says nothing.
std::string HostName();

// Whether `host` is Slurm's name of this node, its host name (with or without the domain), a name
// or an address of the loopback, or an address of one of its interfaces.  No name is looked up.
bool IsThisMachine(const std::string& host, const Environment& environment);

}  // namespace launcher
