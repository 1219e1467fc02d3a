// SPDX-License-Identifier: Apache-2.0
//
// Opens a log for appending in a directory that others may write, too: nothing is waited for, no
// symbolic link of another user is followed, and no file of another user is written to (but of the
// directory's owner), who could read it, or keep it open.  For programs without the C++ library as
// well.

#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/file_owner.h"

namespace support {

// A link of this user's or the system's, such as /dev/stdout, is followed to whatever it leads to.
enum class OwnLinks { kFollow, kReject };

// The descriptor, or -1 with errno: ELOOP for a symbolic link that is not followed, EMEDIUMTYPE for
// what is neither a file nor what a terminal is, EOWNERDEAD for a file of another user
// (ReasonNotToAppend has words).  A file that is made gets `mode` & ~umask.
inline int OpenToAppend(const char* path, mode_t mode, OwnLinks links) {
  // O_NONBLOCK: a FIFO in its place must not hang us.
  constexpr int kFlags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  int fd = open(path, kFlags | O_CREAT, mode);
  if (fd < 0 && errno == ELOOP && links == OwnLinks::kFollow && IsInOwnDirectory(path)) {
    fd = open(path, (kFlags & ~O_NOFOLLOW) | O_CREAT, mode);
    if (fd >= 0) fcntl(fd, F_SETFL, O_APPEND);
    return fd;
  }
  if (fd < 0 && errno == ENXIO) errno = EMEDIUMTYPE;  // a FIFO without a reader, a socket
  if (fd < 0) return -1;
  struct stat status;
  int problem = 0;
  if (fstat(fd, &status) != 0) {
    problem = errno;
  } else if (S_ISREG(status.st_mode)) {
    problem = IsOfUserOrDirectoryOwner(status, path) ? 0 : EOWNERDEAD;
  } else if (!S_ISCHR(status.st_mode)) {
    problem = EMEDIUMTYPE;
  }
  if (problem == 0) {
    fcntl(fd, F_SETFL, O_APPEND);
    return fd;
  }
  close(fd);
  errno = problem;
  return -1;
}

// What OpenToAppend's own errors mean; null for those of the system.
inline const char* ReasonNotToAppend(int error) {
  switch (error) {
    case ELOOP:
      return "it is a symbolic link, which is not followed; remove it";
    case EMEDIUMTYPE:
      return "it is no file; remove it";
    case EOWNERDEAD:
      return "it is a file of another user; remove it";
    default:
      return nullptr;
  }
}

}  // namespace support
