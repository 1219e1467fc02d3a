// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/end_of_process.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace trainer {
namespace {

// Both sequentially consistent: whoever of a handler and a destructor comes second sees the first.
std::atomic<int> delays = 0;
std::atomic<bool> ends = false;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

// The shim knows an end by SIGTERM for one that this rank was told of.
void EndProcess() {
  std::signal(SIGTERM, SIG_DFL);
  kill(getpid(), SIGTERM);
}

}  // namespace

void EndProcessSoon() {
  ends = true;
  if (delays == 0) EndProcess();
}

DelayedEnd::DelayedEnd() { ++delays; }

DelayedEnd::~DelayedEnd() {
  if (--delays == 0 && ends) EndProcess();
}

}  // namespace trainer
