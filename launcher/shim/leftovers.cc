// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/leftovers.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace launcher {

void ReadProcText(const char* path, char* text, size_t size) {
  text[0] = '\0';
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t length = read(fd, text, size - 1);
  close(fd);
  text[length > 0 ? length : 0] = '\0';
}

ProcessState ReadProcessState(pid_t pid) {
  char path[64];
  char text[512];
  snprintf(path, sizeof(path), "/proc/%d/stat", static_cast<int>(pid));
  ReadProcText(path, text, sizeof(text));
  ProcessState process;
  // The name of the program is in parentheses, and may have parentheses itself.
  const char* name = strchr(text, '(');
  const char* name_end = strrchr(text, ')');
  if (name == nullptr || name_end == nullptr || name_end[1] != ' ') return process;
  process.state = name_end[2];
  snprintf(process.name, sizeof(process.name), "%.*s", static_cast<int>(name_end - name - 1),
           name + 1);
  // Number 20 of proc(5), "num_threads"; the state is number 3.
  const char* field = name_end + 2;
  for (int number = 3; number < 20 && field != nullptr; ++number) {
    field = strchr(field, ' ');
    if (field != nullptr) ++field;
  }
  char* end = nullptr;
  if (field != nullptr) process.threads = static_cast<int>(strtol(field, &end, 10));
  return process;
}

bool ForEachChild(pid_t pid, bool (*visit)(pid_t child, void* context), void* context) {
  char path[64];
  char children[4096];
  snprintf(path, sizeof(path), "/proc/%d/task/%d/children", static_cast<int>(pid),
           static_cast<int>(pid));
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  size_t kept = 0;  // of a number that the last piece has cut
  ssize_t got = 0;
  while ((got = read(fd, children + kept, sizeof(children) - 1 - kept)) > 0) {
    const size_t length = kept + static_cast<size_t>(got);
    children[length] = '\0';
    const char* next = children;
    for (;;) {  // each number has a blank behind it
      char* end = nullptr;
      const long child = strtol(next, &end, 10);
      if (end == next || *end != ' ') break;
      next = end + 1;
      if (visit(static_cast<pid_t>(child), context)) continue;
      close(fd);
      return true;
    }
    kept = static_cast<size_t>(children + length - next);
    memmove(children, next, kept);
  }
  close(fd);
  return true;
}

namespace {

long NowMs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

// One look at all that is left.
struct Pass {
  const LeftoverOptions& options;
  int signal;  // which all get; 0: none
  int generation;
  Survivors found;
};

bool IsSpared(pid_t pid, const LeftoverOptions& options) {
  for (int i = 0; i < options.spared_count; ++i) {
    if (options.spared[i] == pid) return true;
  }
  return false;
}

void Send(pid_t pid, int signal) {
  kill(pid, signal);
  if (signal == SIGTERM) kill(pid, SIGCONT);  // one that is stopped would not see it
  // Of a group that forks faster than it is looked at none is missed.
  if (signal == SIGKILL && getpgid(pid) == pid) kill(-pid, SIGKILL);
}

bool Visit(pid_t pid, void* context) {
  auto* const pass = static_cast<Pass*>(context);
  const bool is_child = pass->generation == 0;
  if (is_child && (IsSpared(pid, pass->options) || waitpid(pid, nullptr, WNOHANG) == pid)) {
    return true;
  }
  const ProcessState process = ReadProcessState(pid);
  // One that has ended since waitpid() is reaped by the next pass.
  if (is_child ? process.state == '\0' : process.HasEnded()) return true;
  if (pass->found.count < kMaxSurvivors) {
    Survivor& survivor = pass->found.first[pass->found.count];
    survivor.pid = pid;
    memcpy(survivor.name, process.name, sizeof(survivor.name));
  }
  ++pass->found.count;
  // Those below first: of a process that is gone they would have to be looked for again.
  if (pass->generation < kMaxGenerations) {
    ++pass->generation;
    ForEachChild(pid, Visit, pass);
    --pass->generation;
  }
  if (pass->signal != 0) Send(pid, pass->signal);
  return true;
}

Survivors Look(const LeftoverOptions& options, int signal) {
  Pass pass = {options, signal, 0, {}};
  ForEachChild(getpid(), Visit, &pass);
  return pass.found;
}

}  // namespace

void AdoptOrphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

Survivors EndLeftovers(const LeftoverOptions& options) {
  const long start = NowMs();
  const long terminate_at = start + options.terminate_after_ms;
  const long kill_at = terminate_at + options.grace_ms;
  long first_kill = 0;
  bool has_terminated = false;
  for (;;) {
    const long now = NowMs();
    int signal = 0;
    if (now >= kill_at) {
      signal = SIGKILL;
      // From the kill: this process may have been kept waiting itself.
      if (first_kill == 0) first_kill = now;
    } else if (now >= terminate_at && !has_terminated) {
      signal = SIGTERM;
      has_terminated = true;
    }
    const Survivors left = Look(options, signal);
    if (left.count == 0 || (first_kill != 0 && now - first_kill > options.kill_ms)) return left;
    const timespec moment = {0, now - start < 20 ? 1'000'000 : 5'000'000};
    nanosleep(&moment, nullptr);
  }
}

}  // namespace launcher
