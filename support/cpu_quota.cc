// SPDX-License-Identifier: Apache-2.0

#include "support/cpu_quota.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace support {

GroupFile ReadGroupFile(const char* directory, const char* name) {
  GroupFile file = {};
  char path[2 * PATH_MAX];
  const int length = snprintf(path, sizeof(path), "%s/%s", directory, name);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path)) return file;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return file;
  const ssize_t got = read(fd, file.text, sizeof(file.text) - 1);
  close(fd);
  file.text[got > 0 ? got : 0] = '\0';
  return file;
}

namespace {

// Where distributions mount the controller of version 1; its directory may have other names, too.
constexpr const char* kMountsOfVersion1[] = {"/cpu", "/cpu,cpuacct", "/cpuacct,cpu"};
// The second is where version 1 is in use as well.
constexpr const char* kMountsOfVersion2[] = {"", "/unified"};

// The positive number that `text` begins with, up to `end_mark` or the end of the text; else 0.
long long NumberBefore(const char* text, char end_mark) {
  if (*text < '0' || *text > '9') return 0;
  char* end = nullptr;
  errno = 0;
  const long long number = strtoll(text, &end, 10);
  return errno == 0 && (*end == end_mark || *end == '\0') ? number : 0;
}

CpuQuota MakeQuota(long long time, long long period) {
  if (time <= 0 || period <= 0) return {};
  return {time, period};
}

// Whether `name` is one of `controllers`, "cpu,cpuacct:/path".
bool HasController(const char* controllers, const char* name) {
  for (;;) {
    const size_t length = strcspn(controllers, ",:");
    if (length == strlen(name) && strncmp(controllers, name, length) == 0) return true;
    if (controllers[length] != ',') return false;
    controllers += length + 1;
  }
}

CpuQuota ReadQuota(const char* group, GroupVersion version) {
  if (version == GroupVersion::k2) return ParseCpuMax(ReadGroupFile(group, "cpu.max").text);
  return ParseCfsQuota(ReadGroupFile(group, "cpu.cfs_quota_us").text,
                       ReadGroupFile(group, "cpu.cfs_period_us").text);
}

// Of the group `path` below `mount`, and of all above it.
int MinThreads(const char* mount, const char* path, GroupVersion version, int ranks) {
  int min = INT_MAX;
  char group[2 * PATH_MAX];
  const int length = snprintf(group, sizeof(group), "%s%s", mount, path);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(group)) return min;
  const size_t mount_length = strlen(mount);
  for (;;) {
    const int threads = ThreadsOfShare(ReadQuota(group, version), ranks);
    if (threads < min) min = threads;
    char* slash = strrchr(group, '/');
    if (slash == nullptr || static_cast<size_t>(slash - group) < mount_length) return min;
    *slash = '\0';
  }
}

template <size_t count>
int MinOfMounts(const char* root, const char* const (&mounts)[count], const char* own_groups,
                GroupVersion version, int ranks) {
  char path[PATH_MAX];
  if (!FindGroup(own_groups, version, "cpu", path, sizeof(path))) return INT_MAX;
  // The path of a group that is outside of what this container sees.
  if (strncmp(path, "/..", 3) == 0) path[0] = '\0';
  int min = INT_MAX;
  for (const char* name : mounts) {
    char mount[PATH_MAX];
    const int length = snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup%s", root, name);
    if (length < 0 || static_cast<size_t>(length) >= sizeof(mount)) continue;
    const int threads = MinThreads(mount, path, version, ranks);
    if (threads < min) min = threads;
  }
  return min;
}

}  // namespace

CpuQuota ParseCpuMax(const char* text) {
  const char* blank = strchr(text, ' ');
  if (blank == nullptr) return {};
  return MakeQuota(NumberBefore(text, ' '), NumberBefore(blank + 1, '\n'));
}

CpuQuota ParseCfsQuota(const char* quota, const char* period) {
  return MakeQuota(NumberBefore(quota, '\n'), NumberBefore(period, '\n'));
}

int ThreadsOfShare(const CpuQuota& quota, int ranks) {
  if (quota.period == 0) return INT_MAX;
  // Whole CPUs first: a product of the period could be too large.
  const long long cpus = quota.time / quota.period + (quota.time % quota.period != 0 ? 1 : 0);
  const long long threads = cpus / ranks + (cpus % ranks != 0 ? 1 : 0);
  return threads < INT_MAX ? static_cast<int>(threads) : INT_MAX;
}

bool FindGroup(const char* text, GroupVersion version, const char* controller, char* path,
               size_t size) {
  // "4:cpu,cpuacct:/slurm/uid_1000/job_7", "0::/system.slice"
  for (const char* line = text; *line != '\0';) {
    const size_t length = strcspn(line, "\n");
    const char* number_end = line + strcspn(line, ":\n");
    const char* path_begin = number_end;
    if (*number_end == ':') path_begin += 1 + strcspn(number_end + 1, ":\n");
    if (*number_end == ':' && path_begin[0] == ':' && path_begin[1] == '/') {
      const char* controllers = number_end + 1;
      const bool is_it = version == GroupVersion::k1 ? HasController(controllers, controller)
                                                     : controllers == path_begin;
      const auto path_length = static_cast<size_t>(line + length - path_begin - 1);
      if (is_it && path_length < size) {
        memcpy(path, path_begin + 1, path_length);
        path[path_length] = '\0';
        return true;
      }
    }
    line += length;
    if (*line == '\n') ++line;
  }
  return false;
}

int ThreadsWithinQuota(const char* root, int cores, int ranks) {
  const GroupFile own = ReadGroupFile(root, "proc/self/cgroup");
  const int of_version_1 = MinOfMounts(root, kMountsOfVersion1, own.text, GroupVersion::k1, ranks);
  const int of_version_2 = MinOfMounts(root, kMountsOfVersion2, own.text, GroupVersion::k2, ranks);
  const int min = of_version_1 < of_version_2 ? of_version_1 : of_version_2;
  return min < cores ? min : cores;
}

}  // namespace support
