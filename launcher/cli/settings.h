// SPDX-License-Identifier: Apache-2.0
//
// The settings of a job.  Each comes from the command line, the environment, the site file or a
// default: the first of these that has it.  Pure, but for the working directory, in which relative
// paths begin.

#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/cli/check_limits.h"
#include "launcher/cli/options.h"
#include "launcher/cli/site_config.h"

namespace launcher {

// One line of --show-config.
struct ShownSetting {
  std::string name, value;
  std::string origin;  // "default", "FILE:LINE", "environment NAME", "command line"
};

struct Settings {
  std::string launcher;                              // of LauncherNames()
  std::string pmi;                                   // "auto", "pmix", "pmi2", "none"
  std::string mpirun;                                // command
  std::vector<std::string> mpi_arguments;            // of mpirun
  std::vector<std::string> requested_mpi_arguments;  // those that the command line asked for
  std::vector<std::string> srun_arguments;           // of srun
  bool has_requested_srun_arguments = false;         // by the command line
  bool bind = true;
  std::string rank_order;  // "auto", "topology", "node", "cyclic"
  bool stays_here = true;  // ranks must be in ddlrun's directory; false: in whichever they are
  std::string check;       // "auto", "full", "off"
  CheckLimits check_limits;
  std::string run_directory;  // base of the private run directory
  std::chrono::seconds grace{3};
  std::chrono::seconds start{300};  // how long a start may take; 0: no limit
  // A restart is done on this many nodes or more, once the spare nodes are used; 0: not on fewer.
  int min_nodes = 0;
  std::map<std::string, std::string> rank_settings;  // variables to set for every rank
  std::vector<std::string> requested_exports;        // names given with -x
  std::vector<ShownSetting> shown;                   // every setting
  std::vector<std::string> warnings;                 // one line each with its code (messages.h)

  // Adds to `shown` what the command line has given, or a default.
  void Show(const std::string& name, const std::string& value, bool is_given);
};

// All but those of the features.  Throws LaunchError(EX_USAGE) where -x names a variable that is
// not set, for --min-nodes where no restart or another option would use it, for
// --rank-order=topology beside hosts in an order of the user's, and for a
// --srunarg that is ddlrun's own to say; EX_CONFIG for such a one in the site file.
Settings MergeBaseSettings(const Options& options, const SiteConfig& site,
                           const Environment& environment);

// What --show-config prints: a line per setting with its origin.
std::string SettingsText(const Settings& settings);

}  // namespace launcher
