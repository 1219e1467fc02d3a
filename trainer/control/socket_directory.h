// SPDX-License-Identifier: Apache-2.0
//
// A directory on this node that only this user can look into, for the socket of a training.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainer {

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
