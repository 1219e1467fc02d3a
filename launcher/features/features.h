// SPDX-License-Identifier: Apache-2.0
//
// The features of ddlrun (feature.h) put together with the rest: all options, all settings, all
// watchers.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launcher/features/feature.h"

namespace launcher {

// Every option of ddlrun, in the order of --help.
const std::vector<OptionSpec>& OptionTable();

// The command line of ddlrun, without its own name: ParseOptions (options.h) by that table.
Options ParseOptions(const std::vector<std::string>& arguments);

// Those of MergeBaseSettings (settings.h), and of the features.  Throws as that and
// Feature::merge do.
Settings MergeSettings(const Options& options, const SiteConfig& site,
                       const Environment& environment);

// Throws as Feature::watch does.
std::vector<std::unique_ptr<JobWatcher>> WatchersOf(const JobRun& run);

}  // namespace launcher
