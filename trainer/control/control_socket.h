// SPDX-License-Identifier: Apache-2.0
//
// The Unix socket of a training and the private directory that it is in.

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "support/descriptor.h"

namespace trainer {

// The longest path that a socket can have.
std::size_t MaxBytesOfSocketPath();

// A socket that listens at `path`, which nobody finds before it listens; non-blocking.
// REQUIRES: the directory of `path` is private.  Throws Error(EX_OSERR) that names it.
support::Descriptor ListenAt(const std::string& path);

// A socket that is connected to the one at `path`, with 0 in `error`, or errno of why it is not.
// Whatever waits for the other end waits for kSocketTimeout at most, then fails with EAGAIN.
inline constexpr int kSocketTimeout = 10;  // seconds; a machine may be busy
support::Descriptor ConnectTo(const std::string& path, int& error);

// Whether the process at the other end of `fd` runs as `uid`, by what the kernel noted when it
// connected or began to listen.
bool IsPeerOf(int fd, uid_t uid);

// A directory on this node that only this user can look into, for the socket of a training.
struct SocketDirectoryOptions {
  // ddlrun's, on its own node alone; "" where there is none.
  std::filesystem::path run_directory;
  // Where to make one instead; the first that can be written, and that leaves room for the path of
  // a socket, counts.
  std::vector<std::filesystem::path> bases;
};

class SocketDirectory {
 public:
  // Takes the run directory if it is a directory of this user's with mode 0700 here; else makes
  // BASE/ddltraind.XXXXXX, and removes what killed trainings of this user have left there: such
  // directories with a socket that nobody listens at.  Throws Error(EX_OSERR).
  explicit SocketDirectory(const SocketDirectoryOptions& options);
  // Removes it if it was made here; what is in it must be gone.
  ~SocketDirectory();
  SocketDirectory(const SocketDirectory&) = delete;
  SocketDirectory& operator=(const SocketDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // In it, of this process.
  std::filesystem::path socket() const;

 private:
  std::filesystem::path path_;
  bool is_own_ = false;
};

}  // namespace trainer
