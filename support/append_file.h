// SPDX-License-Identifier: Apache-2.0
//
// Opens a log for appending in a directory that others may write, too: no symbolic link is
// followed, nothing is waited for, and no file of another user is written to, who could read it, or
// keep it open.  For programs without the C++ library as well.

#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace support {

// The descriptor, or -1 with errno: ELOOP for a symbolic link, EMEDIUMTYPE for what is neither a
// file nor what a terminal is, EOWNERDEAD for a file of another user (ReasonNotToAppend has words).
// A file that is made gets `mode` & ~umask.
inline int OpenToAppend(const char* path, mode_t mode) {
  // O_NONBLOCK: a FIFO in its place must not hang us.
  constexpr int kFlags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  // Of one that is made here the owner is not looked at: a file server may give it to another.
  int fd = open(path, kFlags | O_CREAT | O_EXCL, mode);
  const bool is_new = fd >= 0;
  if (fd < 0 && errno == EEXIST) fd = open(path, kFlags);
  if (fd < 0 && errno == ENXIO) errno = EMEDIUMTYPE;  // a FIFO without a reader, a socket
  if (fd < 0) return -1;
  struct stat status;
  int problem = 0;
  if (fstat(fd, &status) != 0) {
    problem = errno;
  } else if (S_ISREG(status.st_mode)) {
    problem = is_new || status.st_uid == geteuid() ? 0 : EOWNERDEAD;
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
