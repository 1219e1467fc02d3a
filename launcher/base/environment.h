// SPDX-License-Identifier: Apache-2.0
//
// The environment of a process as a value.  SnapshotEnvironment is the only function of the
// launcher that reads the process environment; everything else is given a value, and is pure.

#pragma once

#include <map>
#include <string>
#include <vector>

namespace launcher {

// Variables by name.
using Environment = std::map<std::string, std::string>;

// The environment of this process.  Entries that are not NAME=value are left out.
Environment SnapshotEnvironment();

// "NAME=value" for execve, in the order of the names.
std::vector<std::string> ToStrings(const Environment& environment);

// A variable's value, or `fallback` when it is empty or not set.
std::string ValueOr(const Environment& environment, const std::string& name,
                    const std::string& fallback);

// Without SCANCEL_* and SQUEUE_*: by such defaults of the user or the site scancel and
// squeue look at some jobs only, or wait for an answer.
Environment WithoutDefaultsOfSlurmTools(Environment environment);

}  // namespace launcher
