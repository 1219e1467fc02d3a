// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/signal_relay.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launcher/base/error.h"

namespace launcher {
namespace {

bool IsIgnored(int number) {
  struct sigaction action = {};
  sigaction(number, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

bool IsPending(int number) {
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  return sigismember(&pending, number) == 1;
}

bool HasTerminal() {
  return support::Descriptor(open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC)).is_open();
}

}  // namespace

bool IsStopRequestPending() { return IsPending(SIGTERM) || IsPending(SIGINT) || IsPending(SIGHUP); }

void StopAsTerminalWants() {
  sigset_t number;
  sigset_t before;
  sigemptyset(&number);
  sigaddset(&number, SIGTSTP);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &number, &before);  // here it takes effect
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (!IsPending(SIGCONT)) raise(SIGCONT);
}

SignalRelay::SignalRelay() {
  sigset_t read_here;
  sigemptyset(&read_here);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT}) {
    sigaddset(&read_here, number);
  }
  // A signal that is blocked is read even if it is ignored, as nohup does it with SIGHUP.
  if (IsIgnored(SIGHUP)) sigdelset(&read_here, SIGHUP);
  if (HasTerminal() && !IsIgnored(SIGTSTP)) sigaddset(&read_here, SIGTSTP);
  sigset_t blocked = read_here;
  sigaddset(&blocked, SIGPIPE);
  // A handler that does nothing, since children would inherit SIG_IGN.  A write beyond the limit of
  // file sizes fails with EFBIG then, and does not end us.
  struct sigaction size_limit = {};
  sigaction(SIGXFSZ, nullptr, &size_limit);
  if (size_limit.sa_handler == SIG_DFL) std::signal(SIGXFSZ, [](int) {});
  // Where our parent ignored SIGCHLD, we would do so too, and never see the ranks' exit codes.
  std::signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_BLOCK, &blocked, &original_mask_);
  signals_ = support::Descriptor(signalfd(-1, &read_here, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.is_open()) throw OsError("signalfd");
}

SignalRelay::~SignalRelay() {
  signals_.Close();  // before a pending signal takes its effect
  sigprocmask(SIG_SETMASK, &original_mask_, nullptr);
}

std::optional<int> SignalRelay::Next() {
  signalfd_siginfo info = {};
  if (read(fd(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

SignalRelay& SignalsOfProgram() {
  static SignalRelay* const relay = new SignalRelay;
  return *relay;
}

}  // namespace launcher
