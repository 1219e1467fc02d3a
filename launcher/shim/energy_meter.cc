// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/energy_meter.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace launcher {
namespace {

[[noreturn]] void BecomeMeter(int socket, pid_t parent, char* const* argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  setsid();
  // Slurm sends signals to all processes of a step, also before the ranks write their checkpoint.
  constexpr int kIgnored[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
  for (const int number : kIgnored) signal(number, SIG_IGN);
  // A library that is put into ranks, such as a profiler, is none for the meter.  ddlrun has
  // threads: nothing may take memory or a lock here.
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (strncmp(*variable, "LD_PRELOAD=", 11) == 0) **variable = '_';
  }
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  const bool is_ready = nothing >= 0 && dup2(socket, STDIN_FILENO) >= 0 &&
                        dup2(socket, STDOUT_FILENO) >= 0 && dup2(nothing, STDERR_FILENO) >= 0;
  if (is_ready) execv(argv[0], argv);
  _exit(0);
}

// Whether there is something to read, or the end, within the time.
bool WaitForAnswer(int socket) {
  sigset_t all;
  sigfillset(&all);
  pollfd ready = {socket, POLLIN, 0};
  constexpr timespec kLimit = {kEnergyTimeoutMs / 1000, kEnergyTimeoutMs % 1000 * 1'000'000L};
  return ppoll(&ready, 1, &kLimit, &all) > 0;
}

long long ReadAnswer(int socket) {
  char text[32] = "";
  if (recv(socket, text, 1, MSG_DONTWAIT) != 1 || *text != kEnergyIsReady) return -1;
  shutdown(socket, SHUT_WR);
  if (!WaitForAnswer(socket)) return -1;
  const ssize_t length = recv(socket, text, sizeof(text) - 1, MSG_DONTWAIT);
  if (length <= 0) return -1;
  text[length] = '\0';
  char* end = nullptr;
  const long long millijoules = strtoll(text, &end, 10);
  return *end == '\n' && millijoules > 0 ? millijoules : -1;
}

}  // namespace

EnergyMeter StartEnergyMeter(const char* program, int gpus, const char* visible) {
  EnergyMeter meter;
  char count[16];
  snprintf(count, sizeof(count), "%d", gpus);
  char* const argv[] = {const_cast<char*>(program), count, const_cast<char*>(visible), nullptr};
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return meter;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) BecomeMeter(ends[1], parent, argv);
  close(ends[1]);
  if (child > 0) {
    meter = {child, ends[0]};
  } else {
    close(ends[0]);
  }
  return meter;
}

long long StopEnergyMeter(EnergyMeter* meter) {
  if (meter->pid == 0) return -1;
  const long long millijoules = ReadAnswer(meter->socket);
  close(meter->socket);
  // A driver that hangs may keep it even then.  Who has its number may be another process once it
  // was reaped.
  constexpr timespec kMoment = {0, 1'000'000};
  for (int i = 0; i < 100 && waitpid(meter->pid, nullptr, WNOHANG) == 0; ++i) {
    kill(meter->pid, SIGKILL);
    nanosleep(&kMoment, nullptr);
  }
  *meter = {};
  return millijoules;
}

}  // namespace launcher
