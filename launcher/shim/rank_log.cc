// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/rank_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

namespace launcher {

RankLog OpenRankLog(const char* directory, int rank) {
  char path[PATH_MAX + 32];
  snprintf(path, sizeof(path), "%s/rank-%05d.log", directory, rank);
  RankLog log;
  log.problem[0] = '\0';
  log.fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (log.fd >= 0) return log;
  if (errno == ELOOP) {
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
