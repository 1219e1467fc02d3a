// SPDX-License-Identifier: Apache-2.0
//
// One process as /proc has it.  No file is opened and no path looked up but in /proc, so that a
// file system that hangs holds nobody up; but the kernel may make a reader wait whose process holds
// its memory locked: callers do that in threads that they need not wait for.
//
// Needs what ptrace(2) calls read access, which one's own processes give; system calls need attach
// access, which Yama (kernel.yama.ptrace_scope 1 and above) refuses.  Functions are safe from any
// thread.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/diagnose/facts.h"

namespace launcher {

// A part of /proc/PID/stat, or of that of a thread.
struct ProcessStat {
  std::string name;
  char state = '?';
  int parent = 0;
  std::int64_t ticks = 0;  // of CPU time, user and system
  std::int64_t start = 0;  // in ticks since the start of the machine
  int wait_status = 0;     // of a zombie
};
// nullopt for any other text.  Pure.
std::optional<ProcessStat> ParseProcessStat(std::string_view text);
std::optional<ProcessStat> ReadProcessStat(pid_t pid);

// The processes of this user that there are.
std::vector<pid_t> OwnProcesses();
// With which it was started, of a variable that is there twice the first, as getenv has it; none
// where that cannot be read, as of a zombie.
Environment EnvironmentOf(pid_t pid);
// Whether it is a Python interpreter, by the name of its program's file.
bool IsPython(pid_t pid);

// The file system that `path` would be on, by its name alone: "nfs4 at /home", of the text of
// /proc/PID/mountinfo; with `id`, that mount.  "" where there is none.  Pure.
std::string FileSystemOf(std::string_view mountinfo, std::string_view path, int id = -1);

// How a process stands at one moment.
struct ProcessLook {
  ProcessStat stat;
  int thread = 0;        // another one that cannot be interrupted; 0: none
  std::string wait;      // of the thread, as all below; else of the first one
  std::string call;      // the line of `syscall`
  std::string switches;  // how often it was switched to
};
// nullopt where there is no such process.
std::optional<ProcessLook> LookAt(pid_t pid);

// From two looks that were `seconds` apart.
ProcessFacts FactsOf(pid_t pid, const ProcessLook& before, const ProcessLook& now, double seconds);

}  // namespace launcher
