// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/rank_log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "support/append_file.h"

namespace launcher {

RankLog OpenRankLog(const char* directory, int rank) {
  char path[PATH_MAX + 32];
  snprintf(path, sizeof(path), "%s/rank-%05d.log", directory, rank);
  RankLog log;
  log.problem[0] = '\0';
  log.fd = support::OpenToAppend(path, 0666, support::OwnLinks::kReject);
  if (log.fd >= 0) return log;
  if (const char* reason = support::ReasonNotToAppend(errno)) {
    snprintf(log.problem, sizeof(log.problem), "cannot write %.500s: %s, or give another --log-dir",
             path, reason);
  } else {
    snprintf(log.problem, sizeof(log.problem),
             "cannot write %.500s: %s; --log-dir must be a directory that all nodes share", path,
             strerror(errno));
  }
  return log;
}

}  // namespace launcher
