// SPDX-License-Identifier: Apache-2.0

#include "launcher/protocol/attachment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace launcher {
namespace {

struct AttachmentPath {
  char text[100];
};

// Not in the run directory, which is on the node of ddlrun alone.
AttachmentPath PathOfAttachment(const char* root, pid_t rank) {
  AttachmentPath path;
  snprintf(path.text, sizeof(path.text), "%s/dev/shm/ddlrun-attached.%ld", root,
           static_cast<long>(rank));
  return path;
}

// Whether the open file is that of the path, and of this user.
bool IsOwnFileAt(int file, const char* path) {
  struct stat open_file = {};
  struct stat there = {};
  return fstat(file, &open_file) == 0 && lstat(path, &there) == 0 &&
         open_file.st_ino == there.st_ino && open_file.st_dev == there.st_dev &&
         open_file.st_uid == geteuid() && S_ISREG(open_file.st_mode);
}

}  // namespace

int AttachToRank(pid_t parent, pid_t rank) {
  char root[40];
  snprintf(root, sizeof(root), "/proc/%ld/root", static_cast<long>(parent));
  const AttachmentPath path = PathOfAttachment(root, rank);
  constexpr int kTries = 10;  // the rank's parent may remove the file in between
  for (int i = 0; i < kTries; ++i) {
    const int file = open(path.text, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return -1;
    if (flock(file, LOCK_SH) == 0 && IsOwnFileAt(file, path.text)) return file;
    close(file);
  }
  errno = EPERM;
  return -1;
}

void DetachFromRank(int descriptor, pid_t parent, pid_t rank) {
  char root[40];
  snprintf(root, sizeof(root), "/proc/%ld/root", static_cast<long>(parent));
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
    const char* const prefixes[] = {root, ""};  // that of the parent is there while it runs
    for (const char* const prefix : prefixes) {
      const AttachmentPath path = PathOfAttachment(prefix, rank);
      if (IsOwnFileAt(descriptor, path.text)) unlink(path.text);
    }
  }
  close(descriptor);
}

bool IsAttached(pid_t rank) {
  const AttachmentPath path = PathOfAttachment("", rank);
  const int file = open(path.text, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return false;
  bool is_attached = false;
  if (IsOwnFileAt(file, path.text)) {
    is_attached = flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!is_attached) unlink(path.text);
  }
  close(file);
  return is_attached;
}

}  // namespace launcher
