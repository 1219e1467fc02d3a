// SPDX-License-Identifier: Apache-2.0

#include "support/memory_kills.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cpu_quota.h"

namespace support {
namespace {

struct GroupFile {
  char text[4096];  // "" where the file cannot be read
};

__attribute__((format(printf, 1, 2))) GroupFile ReadGroupFile(const char* format, ...) {
  GroupFile file = {};
  char path[2 * PATH_MAX];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(path, sizeof(path), format, arguments);
  va_end(arguments);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path)) return file;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return file;
  const ssize_t got = read(fd, file.text, sizeof(file.text) - 1);
  close(fd);
  file.text[got > 0 ? got : 0] = '\0';
  return file;
}

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
    const long long limit = LeadingNumber(ReadGroupFile("%s/%s", group, file).text);
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

MemoryKills ReadMemoryKills(const char* root) {
  const GroupFile own = ReadGroupFile("%s/proc/self/cgroup", root);
  for (const MemoryController& controller : kMemoryControllers) {
    char path[PATH_MAX];
    if (!FindGroup(own.text, controller.version, "memory", path, sizeof(path))) continue;
    // The path of a group that is outside of what this container sees.
    if (strncmp(path, "/..", 3) == 0) path[0] = '\0';
    char group[3 * PATH_MAX];
    snprintf(group, sizeof(group), "%s%s%s", root, controller.mount, path);
    const long long count = KillsIn(ReadGroupFile("%s/%s", group, controller.kills).text);
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
  snprintf(text, size, "%s%lld process%s for memory%s: ask for more, #SBATCH --mem", kMemoryKill,
           count, count == 1 ? "" : "es", limit);
}

}  // namespace support
