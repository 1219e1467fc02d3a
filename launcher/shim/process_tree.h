// SPDX-License-Identifier: Apache-2.0
//
// Reads /proc: what is there of a process, and which processes it has started.  Without the C++
// library, since the shim uses it.

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
  char state = '\0';   // 'R', 'S', 'T', 'Z', ...; '\0': there is no such process
  char name[16] = "";  // of its program, cut by the kernel
};
ProcessState ReadProcessState(pid_t pid);

// Calls `visit` for each child of the first thread of `pid`, until it returns false.  Children of
// other threads are not looked at: programs fork their workers from the first one, and a program
// may have hundreds of threads.  False where the kernel does not tell (CONFIG_PROC_CHILDREN, which
// distributions have), or there is no such process.
bool ForEachChild(pid_t pid, bool (*visit)(pid_t child, void* context), void* context);

}  // namespace launcher
