// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/start_problem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace launcher {
namespace {

// The first line of a script begins with "#!".
constexpr size_t kMostOfFirstLine = 256;  // what Linux reads of it (BINPRM_BUF_SIZE)

// The interpreter of the script `path`, "" where it is none.  Returns whether the line that names
// it ends as lines do under Windows.
bool ReadInterpreter(const char* path, char (&interpreter)[kMostOfFirstLine]) {
  char line[kMostOfFirstLine] = "";
  interpreter[0] = '\0';
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  const ssize_t length = read(fd, line, sizeof(line) - 1);
  close(fd);
  if (length < 2 || line[0] != '#' || line[1] != '!') return false;
  line[strcspn(line, "\n")] = '\0';
  const char* begin = line + 2 + strspn(line + 2, " \t");
  memcpy(interpreter, begin, strlen(begin) + 1);
  interpreter[strcspn(interpreter, " \t\r")] = '\0';
  return strchr(line, '\r') != nullptr;
}

bool IsProgramHere(const char* name) {
  struct stat status;
  return stat(name, &status) == 0 && S_ISREG(status.st_mode) && access(name, X_OK) == 0;
}

}  // namespace

void DescribeStartProblem(const char* program, int error, char* text, size_t size) {
  const char* words = strerror(error);
  char interpreter[kMostOfFirstLine] = "";
  const bool is_path = strchr(program, '/') != nullptr;
  snprintf(text, size, "%s", words);
  if (error != ENOENT) return;
  if (!is_path && IsProgramHere(program)) {
    snprintf(text, size, "%s in PATH; that of this directory is ./%.500s", words, program);
  } else if (is_path && ReadInterpreter(program, interpreter)) {
    snprintf(
        text, size,
        "the file is there, but its first line ends as under Windows: sed -i 's/\\r$//' %.500s",
        program);
  } else if (is_path && interpreter[0] != '\0') {
    snprintf(text, size, "the file is there, but not its interpreter %s", interpreter);
  }
}

}  // namespace launcher
