// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/rank_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace launcher {
namespace {

// A file, or what a terminal is.
bool IsForLogs(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISCHR(status.st_mode));
}

}  // namespace

RankLog OpenRankLog(const char* directory, int rank) {
  char path[PATH_MAX + 32];
  snprintf(path, sizeof(path), "%s/rank-%05d.log", directory, rank);
  RankLog log;
  log.problem[0] = '\0';
  // O_NONBLOCK: a FIFO without a reader in its place must not hang us.
  log.fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
  if (log.fd >= 0 && IsForLogs(log.fd)) {
    fcntl(log.fd, F_SETFL, O_APPEND);
    return log;
  }
  if (log.fd >= 0 || errno == ENXIO) {
    if (log.fd >= 0) close(log.fd);
    log.fd = -1;
    snprintf(log.problem, sizeof(log.problem),
             "cannot write %.500s: it is no file; remove it, or give another --log-dir", path);
  } else if (errno == ELOOP) {
    snprintf(
        log.problem, sizeof(log.problem),
        "cannot write %.500s: it is a symbolic link, which is not followed; remove it, or give "
        "another --log-dir",
        path);
  } else {
    snprintf(log.problem, sizeof(log.problem),
             "cannot write %.500s: %s; --log-dir must be a directory that all nodes share", path,
             strerror(errno));
  }
  return log;
}

}  // namespace launcher
