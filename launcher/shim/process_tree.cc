// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/process_tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

}  // namespace launcher
