// SPDX-License-Identifier: Apache-2.0
//
// ddlrun, which is bede-mpirun when it is called by that name.  The directories of the pipeline, in
// the order in which a job goes through them:
//
//   cli allocation slurm topology plan spawn     options, nodes, cores and GPUs, plan, commands;
//                                                pipeline puts these steps together
//   protocol shim rank                           what goes to the node of each rank, and runs there
//   supervise restart                            until the ranks have ended, and after a failure
//   health                                       the check of all nodes before
//
// ddlrun and bede are the two programs; base and system are used everywhere.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "launcher/base/error.h"
#include "launcher/base/messages.h"
#include "launcher/bede/bede_mpirun.h"
#include "launcher/ddlrun/run_ddlrun.h"
#include "support/quoting.h"
#include "support/standard_streams.h"

int main(int argc, char** argv) {
  support::OpenStandardStreams();
  const std::string called = argc > 0 ? argv[0] : "";
  const bool is_bede_mpirun = called.substr(called.rfind('/') + 1) == "bede-mpirun";
  const char* name = is_bede_mpirun ? "bede-mpirun" : "ddlrun";
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const auto say = [&](const std::string& error) {
    std::fprintf(stderr, "%s: %s\n", name,
                 support::WithoutControls(support::WithShortArguments(error, arguments)).c_str());
  };
  try {
    return is_bede_mpirun ? launcher::RunBedeMpirun(arguments) : launcher::RunDdlrun(arguments);
  } catch (const launcher::LaunchError& error) {
    say(launcher::CodedError(error));
    return error.exit_code();
  } catch (const std::exception& error) {
    say(launcher::CodedUnexpected(error.what()));
    return EX_SOFTWARE;
  }
}
