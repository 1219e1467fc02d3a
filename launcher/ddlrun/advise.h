// SPDX-License-Identifier: Apache-2.0
//
// ddlrun --advise: what the training of a command line will be on more nodes.  Pure.

#pragma once

#include <string>

#include "launcher/cli/options.h"
#include "launcher/cli/site_config.h"
#include "launcher/placement/launch_plan.h"

namespace launcher {

// The table (launcher/advice/advice.h).  Throws LaunchError(EX_USAGE) for another program than
// ddltraind, and as AdviceText does.
std::string Advice(const Options& options, const SiteConfig& site, const LaunchPlan& plan);

// The same behind the plan of --dry-run: "" for another program, and where there is no table a line
// that says why.
std::string AdviceForDryRun(const Options& options, const SiteConfig& site, const LaunchPlan& plan);

}  // namespace launcher
