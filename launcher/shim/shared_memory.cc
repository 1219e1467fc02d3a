// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/shared_memory.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/protocol/rank_variables.h"

namespace launcher {
namespace {

char directory[NAME_MAX + 16] = "";
char recorder[sizeof(directory) + 40] = "";  // with a slash at its end

void RemoveRecorder() {
  DIR* entries = recorder[0] != '\0' ? opendir(recorder) : nullptr;
  if (entries == nullptr) return;
  while (const dirent* entry = readdir(entries)) unlinkat(dirfd(entries), entry->d_name, 0);
  closedir(entries);
  rmdir(recorder);
}

}  // namespace

const char* MakeSharedMemoryDirectory(const char* run_directory) {
  const char* slash = strrchr(run_directory, '/');
  if (slash == nullptr || slash[1] == '\0') return "";
  char path[sizeof(directory)];
  snprintf(path, sizeof(path), "/dev/shm%s", slash);
  if (mkdir(path, 0700) != 0 && errno != EEXIST) return "";
  struct stat info = {};
  const bool is_private = lstat(path, &info) == 0 && S_ISDIR(info.st_mode) &&
                          info.st_uid == geteuid() && (info.st_mode & 0777) == 0700;
  if (is_private) memcpy(directory, path, strlen(path) + 1);
  return directory;
}

const char* MakeRecorderDirectory(const char* run_directory, int rank) {
  // Another rank may just remove the one above, as the last one in it.
  for (int i = 0; i < 3 && *MakeSharedMemoryDirectory(run_directory) != '\0'; ++i) {
    snprintf(recorder, sizeof(recorder), "%s/%s%d/", directory, kRecorderName, rank);
    if (mkdir(recorder, 0700) == 0 || errno == EEXIST) return recorder;
  }
  recorder[0] = '\0';
  return recorder;
}

void RemoveSharedMemory(int rank) {
  if (directory[0] == '\0') return;
  RemoveRecorder();
  char end[16];  // of vader_segment.HOST.UID.JOB.RANK
  const auto length = static_cast<size_t>(snprintf(end, sizeof(end), ".%d", rank));
  DIR* entries = opendir(directory);
  if (entries == nullptr) return;
  while (const dirent* entry = readdir(entries)) {
    const size_t size = strlen(entry->d_name);
    const bool is_of_rank = strstr(entry->d_name, "_segment.") != nullptr && size > length &&
                            strcmp(entry->d_name + size - length, end) == 0;
    if (is_of_rank) unlinkat(dirfd(entries), entry->d_name, 0);
  }
  closedir(entries);
  rmdir(directory);
}

}  // namespace launcher
