// SPDX-License-Identifier: Apache-2.0

#include "support/memory_kills.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cpu_quota.h"

namespace support {
namespace {

// The number at the beginning of `text`; -1 where there is none.
long long LeadingNumber(const char* text) {
  if (*text < '0' || *text > '9') return -1;
  char* end = nullptr;
  return strtoll(text, &end, 10);
}

// N of the line "oom_kill N".
long long KillsIn(const char* text) {
  constexpr char kName[] = "oom_kill ";
  for (const char* line = text; *line != '\0';) {
    if (strncmp(line, kName, sizeof(kName) - 1) == 0)
      return LeadingNumber(line + sizeof(kName) - 1);
    line += strcspn(line, "\n");
    if (*line == '\n') ++line;
  }
  return -1;
}

// The least limit of the group and those above it, up to `mount`.  Version 1 says "no limit" by a
// number close to 2^63.
long long MinLimit(char* group, size_t mount_length, const char* file) {
  constexpr long long kNoLimit = 1LL << 60;
  long long min = kNoLimit;
  for (;;) {
    const long long limit = LeadingNumber(ReadGroupFile(group, file).text);
    if (limit >= 0 && limit < min) min = limit;
    char* slash = strrchr(group, '/');
    if (slash == nullptr || static_cast<size_t>(slash - group) < mount_length) break;
    *slash = '\0';
  }
  return min < kNoLimit ? min : 0;
}

struct MemoryController {
  GroupVersion version;
  const char* mount;
  const char* kills;
  const char* limit;
};
constexpr MemoryController kMemoryControllers[] = {
    {GroupVersion::k2, "/sys/fs/cgroup", "memory.events", "memory.max"},
    {GroupVersion::k1, "/sys/fs/cgroup/memory", "memory.oom_control", "memory.limit_in_bytes"},
};

}  // namespace

MemoryKills ReadMemoryKills(const char* root, const char* process) {
  char file[64];
  snprintf(file, sizeof(file), "proc/%s/cgroup", process);
  const GroupFile own = ReadGroupFile(root, file);
  for (const MemoryController& controller : kMemoryControllers) {
    char path[PATH_MAX];
    if (!FindGroup(own.text, controller.version, "memory", path, sizeof(path))) continue;
    // The path of a group that is outside of what this container sees.
    if (strncmp(path, "/..", 3) == 0) path[0] = '\0';
    char group[3 * PATH_MAX];
    snprintf(group, sizeof(group), "%s%s%s", root, controller.mount, path);
    const long long count = KillsIn(ReadGroupFile(group, controller.kills).text);
    if (count < 0) continue;
    const size_t mount_length = strlen(root) + strlen(controller.mount);
    return {count, MinLimit(group, mount_length, controller.limit)};
  }
  return {-1, 0};
}

void DescribeMemoryKills(const MemoryKills& before, const MemoryKills& now, char* text,
                         size_t size) {
  text[0] = '\0';
  const long long count = now.count - before.count;
  if (before.count < 0 || count <= 0) return;
  char limit[64] = "";
  if (now.limit_bytes > 0) {
    snprintf(limit, sizeof(limit), " (limit %lld MiB)", now.limit_bytes >> 20);
  }
  snprintf(text, size, "%s%lld process%s for memory%s: give the job more (#SBATCH --mem)",
           kMemoryKill, count, count == 1 ? "" : "es", limit);
}

}  // namespace support
