// SPDX-License-Identifier: Apache-2.0
//
// Runs commands, one after the other or at once, and hands on the signals that are meant to stop
// them.  While there is one, SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are blocked and waited
// for. One at a time; single-threaded programs only.

#pragma once

#include <sys/types.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

// Each a path, or a name in PATH.
struct Programs {
  std::string ddlbench;
  std::string ddlrun;
  std::string ddltraind;
};

struct Command {
  std::vector<std::string> argv;  // argv[0] is a path, or a name in PATH
  // Where what it writes goes, made anew; "": where ours goes.
  std::filesystem::path output = {};
  // Beside the variables of this program, or instead of those of the same names.
  std::vector<std::pair<std::string, std::string>> variables = {};
  std::vector<int> cpus = {};  // that it may run on; none: those that this program may run on
};

class CommandRunner {
 public:
  CommandRunner();
  ~CommandRunner();
  CommandRunner(const CommandRunner&) = delete;
  CommandRunner& operator=(const CommandRunner&) = delete;

  // Starts `commands`, each with nothing to read and in a process group of its own, and waits for
  // the end of all; they are told to end when this program dies, and when one of them cannot be
  // started.  `meanwhile`, if there is one, is called a few times a second while any runs and once
  // after the end; it must not throw.  Returns their exit codes in the order of `commands`; 128 + n
  // of one that signal n ended.  Throws trainer::Error: EX_UNAVAILABLE when one cannot be started,
  // EX_OSERR for an output, EX_OSERR.
  std::vector<int> RunAll(const std::vector<Command>& commands,
                          const std::function<void()>& meanwhile = nullptr);

  // The same of one.
  int Run(const std::vector<std::string>& argv, const std::filesystem::path& output,
          const std::function<void()>& meanwhile = nullptr);

  // The first of the signals that has come so far; 0: none.
  int StopSignal();

 private:
  pid_t Start(const Command& command) const;
  // Waits for the end of those of `children` that still run, 0 in the place of each that has ended,
  // and writes their codes.
  void WaitForAll(std::vector<pid_t>& children, std::vector<int>& codes,
                  const std::function<void()>& meanwhile);

  sigset_t stop_signals_ = {};
  sigset_t before_ = {};
  int stop_signal_ = 0;
};

}  // namespace bench
