// SPDX-License-Identifier: Apache-2.0
//
// Ends what a rank leaves behind: workers of a rank that was killed, helpers that it has started
// with setsid(2) or by two forks.  They would hold the GPU's memory and the output of the job.
// Reads /proc: what is there of a process, and which processes it has started.  Without the C++
// library, since the shim uses it for its rank, and ddlrun for ranks of its own.

#pragma once

#include <stddef.h>
#include <sys/types.h>

namespace launcher {

// How deep the tree of the processes of a rank is looked at.
inline constexpr int kMaxGenerations = 16;

// The beginning of a file of /proc, as a text; "" where it cannot be read.
void ReadProcText(const char* path, char* text, size_t size);

// A part of /proc/PID/stat.
struct ProcessState {
  char state = '\0';   // of its first thread: 'R', 'S', 'T', 'Z', ...; '\0': no such process
  char name[16] = "";  // of its program, cut by the kernel
  int threads = 0;     // that are there, the first one included also when it has ended
  // Of a process with several threads the first may have ended, and be 'Z', while others still run
  // or give back their memory: it holds its GPU until the last has ended.
  bool HasEnded() const { return state == '\0' || (state == 'Z' && threads <= 1); }
};
ProcessState ReadProcessState(pid_t pid);

// Calls `visit` for each child of the first thread of `pid`, until it returns false.  Children of
// other threads are not looked at: programs fork their workers from the first one, and a program
// may have hundreds of threads.  False where the kernel does not tell (CONFIG_PROC_CHILDREN, which
// distributions have), or there is no such process.
bool ForEachChild(pid_t pid, bool (*visit)(pid_t child, void* context), void* context);

// From now on a process whose parent has ended becomes a child of this process, if it descends from
// it (PR_SET_CHILD_SUBREAPER, prctl(2)).  Somebody has to reap those that end.
void AdoptOrphans();

struct LeftoverOptions {
  // Children of this process that are none, and are neither signalled nor reaped.
  const pid_t* spared = nullptr;
  int spared_count = 0;
  int terminate_after_ms = 0;  // before SIGTERM: they may end by themselves
  int grace_ms = 500;          // between SIGTERM and SIGKILL
  int kill_ms = 2000;          // after the first SIGKILL
};

// A process that was sent SIGKILL and is still there: in a call of the kernel that does not return,
// or of another user (a set-user-ID program).
struct Survivor {
  pid_t pid = 0;
  char name[16] = "";  // of its program
};
inline constexpr int kMaxSurvivors = 8;
struct Survivors {
  int count = 0;                  // of all
  Survivor first[kMaxSurvivors];  // of them
};

// Sends SIGTERM and SIGCONT to all children of this process and to what is below them, SIGKILL when
// the grace is over, again and again while processes come up, and reaps them.  Returns when none is
// left, at once where none was; or when kill_ms is over.  Where the kernel does not tell of
// children (ForEachChild) nothing is done.  For single-threaded callers.
Survivors EndLeftovers(const LeftoverOptions& options);

}  // namespace launcher
