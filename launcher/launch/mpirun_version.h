// SPDX-License-Identifier: Apache-2.0
//
// Tells from what `mpirun --version` prints which MPI the mpirun belongs to.  Pure.
//
// One of the lines, which need not be the first since some sites print lines of their own, is this:
//
//   mpirun (Open MPI) 4.1.4           up to version 4 the runtime below it is ORTE
//   mpirun (Open MPI) 5.0.7           from version 5 on it is PRRTE
//   prterun (PRRTE) 3.0.8
//   mpiexec (OpenRTE) 4.1.4
//   mpirun (IBM Spectrum MPI) 10.3.1  made of Open MPI 3 and 4
// or one of another launcher's program, as mpirun_version.cc has them.  ORTE and PRRTE take
// different options and variables.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/system/child_process.h"

namespace launcher {

enum class MpiRuntime { kOrte, kPrrte };

struct MpirunVersion {
  std::string name;                   // "Open MPI 5.0.7", "Intel MPI 2021.10"; "" when not known
  std::optional<MpiRuntime> runtime;  // nullopt: it is not the mpirun of Open MPI
  std::string other_launcher;         // whose program it is, if not of "mpirun"; "" when not known
  std::string first_line;             // of what it printed, for a message; at most 80 bytes
};

// Never throws.  For a text in no known form the name is "".
MpirunVersion ParseMpirunVersion(const std::string& text);

// What to do where an mpirun is missing or is not Open MPI's.
inline constexpr char kHowToHaveOpenMpi[] =
    "load Open MPI ('module load openmpi'), or name its mpirun in the site file (mpirun: PATH)";

// Why ranks cannot be started by the mpirun at `path`, "" when they can.
std::string MpirunLacks(const std::string& path, const MpirunVersion& version);

// The first of `hosts` whose name Open MPI 4 does not take (4.1.4: "illegal character in the
// following node name"), which is the whole mpirun's end; "" where there is none.
std::string HostThatOrteRejects(const std::vector<std::string>& hosts);

// Asks mpirun for its version.  That takes 20 to 50 ms, so it is started early and waited for late.

// Starts `mpirun --version`; `mpirun` is a path.  Null where that is "".  Throws LaunchError as
// CommandOutput does.
std::unique_ptr<CommandOutput> QueryMpirun(const std::string& mpirun,
                                           const Environment& environment);

// Waits for the answer, for 30 s at most.  `requested` is not null.
MpirunVersion AnswerOfMpirun(CommandOutput* requested);

}  // namespace launcher
