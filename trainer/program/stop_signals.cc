// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/stop_signals.h"

#include <csignal>
#include <initializer_list>

#include "launcher/protocol/peer_failed.h"
#include "trainer/core/end_of_process.h"

namespace trainer {
namespace {

volatile std::sig_atomic_t stop_signal = 0;

extern "C" void RequestStop(int signal_number) {
  stop_signal = signal_number;
  if (signal_number == SIGINT) std::signal(SIGINT, SIG_DFL);
}

extern "C" void EndForPeer(int) { EndProcessSoon(); }

}  // namespace

void CatchStopSignals() {
  struct sigaction action = {};
  action.sa_handler = RequestStop;
  action.sa_flags = SA_RESTART;
  for (const int signal_number : {SIGTERM, SIGUSR1, SIGXCPU, SIGINT})
    sigaction(signal_number, &action, nullptr);
  action.sa_handler = EndForPeer;
  sigaction(launcher::kPeerFailedSignal, &action, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

int StopSignal() { return stop_signal; }

}  // namespace trainer
