// SPDX-License-Identifier: Apache-2.0
//
// Runs commands one after the other and hands on the signals that are meant to stop them.  While
// there is one, SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are blocked and waited for.
// One at a time; single-threaded programs only.

#pragma once

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace bench {

class CommandRunner {
 public:
  CommandRunner();
  ~CommandRunner();
  CommandRunner(const CommandRunner&) = delete;
  CommandRunner& operator=(const CommandRunner&) = delete;

  // Starts `argv` (argv[0] is a path, or a name in PATH), with nothing to read, in a process group
  // of its own, and waits for its end; it is told to end when this program dies.  What it writes
  // goes to `output`, which is made anew, or where ours goes when that is "".  `meanwhile`, if
  // there is one, is called a few times a second while it runs and once after its end; it must not
  // throw. Returns its exit code, or 128 + n when signal n ended it. Throws trainer::Error:
  // EX_UNAVAILABLE when it cannot be started, EX_OSERR for `output`, EX_OSERR.
  int Run(const std::vector<std::string>& argv, const std::filesystem::path& output,
          const std::function<void()>& meanwhile = nullptr);

  // The first of the signals that has come so far; 0: none.
  int StopSignal();

 private:
  sigset_t stop_signals_ = {};
  sigset_t before_ = {};
  int stop_signal_ = 0;
};

}  // namespace bench
