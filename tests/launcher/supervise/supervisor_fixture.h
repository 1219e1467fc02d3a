// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the supervisor share: a directory of their own, and ranks that are scripts.

#pragma once

#include <unistd.h>

#include "launcher/supervise/supervisor.h"
#include "tests/support/test.h"

namespace launcher {

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() : directory_(testing::TempDir() + "supervisor." + std::to_string(getpid())) {
    std::filesystem::create_directory(directory_);
  }
  ~SupervisorTest() override { std::filesystem::remove_all(directory_); }

  // One rank per script of sh, in `directory_`.
  JobResult Run(const std::vector<std::string>& scripts, std::chrono::milliseconds grace) {
    std::vector<ChildCommand> commands;
    SupervisorOptions options;
    options.grace = grace;
    for (const std::string& script : scripts) {
      ChildCommand command;
      command.rank = static_cast<int>(commands.size());
      command.argv = {"/bin/sh", "-c", "cd '" + directory_ + "'; " + script};
      command.environment = {"PATH=/usr/bin:/bin"};
      commands.push_back(command);
      options.hosts.push_back("n" + std::to_string(command.rank + 1));
    }
    SignalRelay signals;
    return Supervise(commands, options, signals);
  }

  std::string Content(const std::string& name) const {
    std::ifstream file(directory_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Sends ddlrun (this process) a signal once the file `ready` is there, as a child would not.
  std::string SignalWhenReady(const std::string& name) const {
    return "while [ ! -e ready ]; do sleep 0.02; done; kill -" + name + " " +
           std::to_string(getpid()) + "; ";
  }

  static constexpr std::chrono::seconds kLong{60};
  std::string directory_;
};

}  // namespace launcher
