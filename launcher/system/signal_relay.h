// SPDX-License-Identifier: Apache-2.0
//
// The signals that ddlrun passes on to its ranks, as a file descriptor to poll.  Made before the
// first child; one at a time in a process, in its only thread.

#pragma once

#include <csignal>
#include <optional>

namespace launcher {

// Whether a signal means that the job shall end, and stay ended.
inline bool IsOrderToStop(int number) {
  return number == SIGTERM || number == SIGINT || number == SIGHUP;
}

// Whether one of them waits for a SignalRelay, which alone takes it.
bool IsOrderToStopPending();

// "SIGTERM" of these three.
inline const char* NameOfOrderToStop(int number) {
  return number == SIGTERM ? "SIGTERM" : number == SIGINT ? "SIGINT" : "SIGHUP";
}

class SignalRelay {
 public:
  // Blocks SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT (read here) and SIGPIPE (a
  // write then fails with EPIPE).  An ignored SIGHUP (nohup) stays so and is not read.  Throws
  // LaunchError(EX_OSERR).
  SignalRelay();
  // Restores the mask; what is pending then takes its effect.
  ~SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  // Readable when a signal waits.
  int fd() const { return fd_; }

  // The next signal that waits; nullopt when there is none.
  std::optional<int> Next();

  // What a child must restore before exec.
  const sigset_t& original_mask() const { return original_mask_; }

 private:
  int fd_ = -1;
  sigset_t original_mask_ = {};
};

// The relay of a program, made by the first call and never destroyed: a signal that comes when
// nobody reads it any more stays pending, and does not take the place of the exit code.
SignalRelay& SignalsOfProgram();

}  // namespace launcher
