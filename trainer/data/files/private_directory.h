// SPDX-License-Identifier: Apache-2.0
//
// A directory of this user alone (mode 0700), whose files nobody else can have written, read or
// changed.  Processes of one user meet in it.
//
// Errors are Error(EX_OSERR) that name the path.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/core/file.h"

namespace trainer {

class PrivateDirectory {
 public:
  // Makes it where it is not there; the directory above must be.  Throws where it cannot, or where
  // what is there is a link, another user's, or open to others.
  explicit PrivateDirectory(std::string path);

  const std::string& path() const { return path_; }

  // All of a file of this user, a plain one and no link; nothing otherwise, or if it has more
  // bytes.
  std::optional<std::string> Read(const std::string& name, std::uint64_t max_bytes) const;
  // The file appears under its name when it is whole, instead of one that is there.
  // REQUIRES: no two processes write the same file at once.
  void Write(const std::string& name, std::string_view bytes) const;
  // A file of this user to read and write in place, made where it is not there; throws where that
  // fails.
  support::Descriptor OpenToUpdate(const std::string& name) const;
  // Removes the oldest of the files whose names begin with `prefix`, until no more than `kept` are
  // there.  What cannot be removed stays.
  void Prune(const std::string& prefix, std::size_t kept) const;

  // A lock, which is held as long as the descriptor lives, and no longer than this process does;
  // nothing if another process has it for all of `patience`, or where there are no locks.
  std::optional<support::Descriptor> Lock(const std::string& name,
                                          std::chrono::milliseconds timeout) const;

 private:
  support::Descriptor Open(const std::string& name, int flags) const;

  std::string path_;
  support::Descriptor directory_;
};

}  // namespace trainer
