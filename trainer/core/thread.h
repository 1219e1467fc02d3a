// SPDX-License-Identifier: Apache-2.0
//
// Threads of a process, and its end.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace trainer {

// Starting threads, of which a process may get fewer than it asks for, and their priority.

// More than any machine has cores.  OpenMP's runtime dies without a word of very many.
inline constexpr int kMaxThreads = 1024;

// Starts a thread that runs `body`.  Throws Error(EX_OSERR) "cannot start WHAT: ..." with the
// limits to look at; who has started others by then must tell them to end.
std::jthread StartThread(const std::string& what, std::function<void()> body);

// Tries whether `count` threads can run beside those there are, and ends them again: for libraries
// that end the process where a thread cannot be had.  Throws as StartThread does.
void TryThreads(const std::string& what, int count);

// The calling thread, and no other, gets a smaller share of a processor that others want too, and
// its turn with a disk after theirs.  A system that knows no such thing leaves it as it is.
void LowerOwnPriority();

// An end of the process from a signal handler, which waits for nothing but what must not be cut
// short: a checkpoint that is being written.

// Ends the process by SIGTERM, without destructors: at once, or where a DelayedEnd exists when the
// last of them is destroyed.  From a signal handler or any thread.
void EndProcessSoon();

// While one exists EndProcessSoon waits.  From any thread.
class DelayedEnd {
 public:
  DelayedEnd();
  ~DelayedEnd();
  DelayedEnd(const DelayedEnd&) = delete;
  DelayedEnd& operator=(const DelayedEnd&) = delete;
};

// Calls body(i) once for each i in [0, count), on up to `threads` threads, the caller's among them,
// in ascending order of start.  Where the system gives fewer, it does with those.  If bodies throw,
// no new ones are started, and the exception of the smallest i is thrown on.
void ParallelFor(int threads, std::int64_t count, const std::function<void(std::int64_t)>& body);

}  // namespace trainer
