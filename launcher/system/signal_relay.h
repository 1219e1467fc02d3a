// SPDX-License-Identifier: Apache-2.0
//
// The signals that ddlrun passes on to its ranks, as a file descriptor to poll.  A process has one
// SignalRelay at a time, which it makes before its first child, in its only thread.

#pragma once

#include <csignal>
#include <optional>

#include "support/descriptor.h"

namespace launcher {

// Whether the signal means that the job is to end, and is not to be started again.
inline bool IsStopRequest(int number) {
  return number == SIGTERM || number == SIGINT || number == SIGHUP;
}

// Whether such a signal is pending.  It stays so: only SignalRelay::Next takes it.
bool IsStopRequestPending();

// The name of one of these three signals.
inline const char* NameOfStopRequest(int number) {
  return number == SIGTERM ? "SIGTERM" : number == SIGINT ? "SIGINT" : "SIGHUP";
}

// What SIGTSTP, Ctrl-Z, does where it is not read: the shell that waits for this process goes on,
// and this returns when the shell continues it; at once where no shell could.  SIGCONT waits then.
// REQUIRES: a SignalRelay.
void StopAsTerminalWants();

class SignalRelay {
 public:
  // Blocks SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT and, where there is a
  // terminal, SIGTSTP, which Next then reads, and SIGPIPE, so that a write fails with EPIPE;
  // SIGXFSZ has no effect any more.  Where SIGHUP (nohup) or SIGTSTP is ignored it stays ignored.
  // Throws LaunchError(EX_OSERR).
  SignalRelay();
  // Restores the signal mask; a signal that is pending then takes its effect.
  ~SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  // Readable when a signal waits.
  int fd() const { return signals_.fd(); }

  // The next signal that waits; nullopt when there is none.
  std::optional<int> Next();

  // The signal mask from before, which every child restores before exec.
  const sigset_t& original_mask() const { return original_mask_; }

 private:
  support::Descriptor signals_;
  sigset_t original_mask_ = {};
};

// The relay of a program, made by the first call.  It is never destroyed: a signal that comes while
// the program is ending stays pending, and does not end it instead of its exit code.
SignalRelay& SignalsOfProgram();

}  // namespace launcher
