// SPDX-License-Identifier: Apache-2.0
//
// Looks at the ranks of a job on this node, as the user whose ranks they are: the processes of each
// rank at two moments, and the functions that it is in (stacks.h).  Ranks are found by the
// variables that ddlrun gives them, whatever has started them.

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/diagnose/facts.h"

namespace launcher {

struct CollectOptions {
  std::string directory;  // the run directory, which ranks are found by the name of
  std::string job;        // where that is "": Slurm's number of the job, and in it
  std::string run;        // the ranks of NodeFacts::run alone; "": all
  std::string host;       // as this node is to be called
  Environment environment;
  bool with_stacks = true;  // functions, and what NCCL and GPUs say
  std::chrono::milliseconds between_looks{500};
  // Then what is not known stays so; a process that hangs as it is looked at costs no more.
  std::chrono::milliseconds limit{9000};
  std::string kernel_log = "/dev/kmsg";  // tests have a file
};

// A note of a job in which ddlrun runs several times at once.
inline constexpr char kSeveralRuns[] =
    "several runs of ddlrun are in this job: give the run directory of one";

// Does not throw.  Starts programs: for callers whose threads do not.
NodeFacts CollectFacts(const CollectOptions& options);

}  // namespace launcher
