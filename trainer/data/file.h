// SPDX-License-Identifier: Apache-2.0
//
// Plain files by descriptor: whole reads at an offset, whole writes, and files that appear under
// their name only when they are complete.

#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace trainer {

// Owns a descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Throws Error(EX_DATAERR) naming the path and the reason.  Does not wait for a named pipe's
// writer.
FileDescriptor OpenForReading(const std::string& path);

// What tells a file as it is from the same file after anybody has written to it, and from another
// in its place.  Times are in nanoseconds since 1970; nobody can set the time of the last change.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;
  std::int64_t changed = 0;  // also by a rename, or by who may read it
  bool operator==(const FileIdentity&) const = default;
};

// Throws Error(EX_DATAERR) if it is not a regular file.
FileIdentity IdentityOf(const FileDescriptor& file, const std::string& path);
// In bytes.  Throws as IdentityOf.
std::uint64_t FileSize(const FileDescriptor& file, const std::string& path);

// Fills `bytes` from `offset`; returns how many were there: fewer only at the end of the file.
// Throws Error(EX_OSERR) naming `path`.  Safe from several threads at once.
std::size_t ReadAt(const FileDescriptor& file, const std::string& path, std::uint64_t offset,
                   std::span<std::uint8_t> bytes);

// The whole file.  Throws Error(EX_DATAERR) if it cannot be opened or is longer than `max_bytes`.
std::string ReadWholeFile(const std::string& path, std::uint64_t max_bytes);

// A file that is written under a hidden temporary name beside `path` and takes the name `path` when
// Commit is called; without Commit nothing is left behind.  Throws Error(EX_OSERR) naming `path`.
class NewFile {
 public:
  explicit NewFile(std::string path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void Write(std::span<const std::uint8_t> bytes);
  // No more writes; all bytes are on the disk when it returns.  The descriptor is closed.
  void Finish();
  // REQUIRES: Finish().
  void Commit();

 private:
  std::string path_;
  std::string temporary_;  // "" once committed
  FileDescriptor file_;
};

}  // namespace trainer
