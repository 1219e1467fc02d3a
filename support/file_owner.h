// SPDX-License-Identifier: Apache-2.0
//
// Who has made a file, in a directory that others may write, too.  For programs without the C++
// library as well.

#pragma once

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace support {

// The status of the directory in which `path` is; false where there is none.
inline bool StatDirectoryOf(const char* path, struct stat* status) {
  char directory[PATH_MAX] = ".";
  if (const char* slash = strrchr(path, '/')) {
    const size_t length = slash == path ? 1 : static_cast<size_t>(slash - path);
    if (length >= sizeof(directory)) return false;
    memcpy(directory, path, length);
    directory[length] = '\0';
  }
  return stat(directory, status) == 0;
}

// Whether the file at `path`, of this status, is of this user, or of the owner of its directory,
// who could replace it.  A file server may have all files belong to one user (all_squash, SMB).
inline bool IsOfUserOrDirectoryOwner(const struct stat& status, const char* path) {
  struct stat directory;
  return status.st_uid == geteuid() ||
         (StatDirectoryOf(path, &directory) && status.st_uid == directory.st_uid);
}

// Whether only this user or the system can have made what is at `path`, such as a link.
inline bool IsInOwnDirectory(const char* path) {
  struct stat directory;
  return StatDirectoryOf(path, &directory) &&
         (directory.st_uid == geteuid() || directory.st_uid == 0) &&
         (directory.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace support
