// SPDX-License-Identifier: Apache-2.0
//
// An end of the process from a signal handler, which waits for nothing but what must not be cut
// short: a checkpoint that is being written.

#pragma once

namespace trainer {

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

}  // namespace trainer
