// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/stopped.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace launcher {
namespace {

constexpr int kMostGenerations = 16;

// The beginning of a file of /proc; "" where it cannot be read.
template <size_t size>
void ReadText(const char* path, char (&text)[size]) {
  text[0] = '\0';
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t length = read(fd, text, size - 1);
  close(fd);
  text[length > 0 ? length : 0] = '\0';
}

bool IsStopped(pid_t pid) {
  char path[64];
  char text[512];
  snprintf(path, sizeof(path), "/proc/%d/stat", static_cast<int>(pid));
  ReadText(path, text);
  // The name of the program is in parentheses, and may have parentheses itself.
  const char* name_end = strrchr(text, ')');
  return name_end != nullptr && name_end[1] == ' ' && (name_end[2] == 'T' || name_end[2] == 't');
}

pid_t FindStoppedBelow(pid_t pid, int generations) {
  if (IsStopped(pid)) return pid;
  if (generations == 0) return 0;
  char path[64];
  char children[4096];
  snprintf(path, sizeof(path), "/proc/%d/task/%d/children", static_cast<int>(pid),
           static_cast<int>(pid));
  ReadText(path, children);
  const char* next = children;
  for (;;) {
    char* end = nullptr;
    const long child = strtol(next, &end, 10);
    if (end == next || child <= 0) return 0;
    next = end;
    const pid_t stopped = FindStoppedBelow(static_cast<pid_t>(child), generations - 1);
    if (stopped != 0) return stopped;
  }
}

}  // namespace

pid_t FindStopped(pid_t program) { return FindStoppedBelow(program, kMostGenerations); }

StoppedWatch::Step StoppedWatch::Look(pid_t stopped, double now, bool is_told_to_stop,
                                      double grace) {
  if (is_told_to_stop && told_at_ < 0) told_at_ = now;
  if (stopped == 0) {
    since_ = -1;
    was_said_ = false;
    return Step::kNothing;
  }
  if (since_ < 0) since_ = now;
  if (is_told_to_stop && now - (since_ > told_at_ ? since_ : told_at_) >= grace) {
    return Step::kKill;
  }
  if (was_said_ || now - since_ < kLong) return Step::kNothing;
  was_said_ = true;
  return Step::kSay;
}

}  // namespace launcher
