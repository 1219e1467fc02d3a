// SPDX-License-Identifier: Apache-2.0
//
// The site file: what is the same for every job of a cluster, in strict YAML.  Keys, all optional:
//
//   launcher: auto | srun | mpirun | local
//   pmi: auto | pmix | pmi2 | none
//   mpirun: COMMAND                   name in PATH, or a path
//   mpi_arguments: [ARG, ...]         one mpirun argument each
//   srun_arguments: [ARG, ...]        one srun argument each
//   environment: {NAME: value, ...}   for every rank, each only if the user has not set it
//   bind: auto | none
//   rank_order: auto | topology | node | cyclic
//   gpu_visibility: auto | all | rank
//   check: auto | full | off
//   check_limits: {KEY: X, ...}       when a check warns or fails (check_limits.h)
//   min_nodes: N                      nodes that are enough for a restart when one was lost, from 1
//   machine: {KEY: value, ...}       its GPUs and links, for predictions (scaling/machine.h)
//   run_directory: DIR                base of the private run directories
//   grace_seconds: N                  time between SIGTERM and SIGKILL for the other ranks when one
//                                     has failed
//   start_seconds: N                  time until the programs of all ranks must run; 300 by
//                                     default, 0 for no limit
//
// A key that is not known, a wrong type, an anchor or alias, a file over kMaxSiteBytes and nesting
// over kMaxSiteDepth are refused with LaunchError(EX_CONFIG), file and line.

#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "scaling/machine.h"

namespace launcher {

inline constexpr std::size_t kMaxSiteBytes = 65536;
inline constexpr int kMaxSiteDepth = 4;

template <typename T>
struct SiteValue {
  T value;
  int line = 0;  // in the file, from 1
};

struct SiteConfig {
  std::string path;  // "" for no file
  std::optional<SiteValue<std::string>> launcher, pmi, mpirun, bind, rank_order, gpu_visibility,
      check, run_directory;
  std::optional<SiteValue<std::vector<std::string>>> mpi_arguments, srun_arguments;
  std::optional<SiteValue<int>> grace_seconds, start_seconds, min_nodes;
  std::map<std::string, SiteValue<std::string>> environment;
  std::map<std::string, SiteValue<std::string>> check_limits;  // numbers, by kCheckLimitKeys
  scaling::Machine machine;
};

// Pure; `path` is for messages.
SiteConfig ParseSiteConfig(const std::string& text, const std::string& path);

// Reads `path`.  Throws LaunchError(EX_CONFIG) when it cannot be read.
SiteConfig LoadSiteConfig(const std::string& path);

// Where the site's administrator puts site files for every ddlrun of a machine, also for those that
// users install for themselves (pip) and those of containers.
inline constexpr char kOwnSites[] = "/etc/ddlrun";

// Where the site file of `wanted` is: a text with '/' or ending in .yaml is a path; anything else
// names NAME.yaml in `own`, else in `installed`; "" is site.yaml in `own`, else "generic".  Throws
// LaunchError(EX_CONFIG) with the nearest name for one that is in neither.
std::string FindSiteFile(const std::string& wanted, const std::string& own,
                         const std::string& installed);

// The site file of this run: `requested` (--site), else $DDLRUN_SITE, else site.yaml in kOwnSites,
// else "generic".  Throws LaunchError(EX_CONFIG).
SiteConfig LoadSite(const std::string& requested, const Environment& environment);

}  // namespace launcher
