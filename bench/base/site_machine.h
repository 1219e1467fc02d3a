// SPDX-License-Identifier: Apache-2.0
//
// The links of a machine, by a site file of ddlrun.

#pragma once

#include <string>

#include "scaling/machine.h"

namespace bench {

// `machine:` of the file `site`, or of the installed one of that name (launcher/cli/site_config.h).
// Throws trainer::Error as that does.
scaling::Machine MachineOfSite(const std::string& site);

}  // namespace bench
