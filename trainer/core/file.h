// SPDX-License-Identifier: Apache-2.0
//
// Plain files, as support/file.h has them, with the trainer's exception for what fails: files by
// descriptor, whole files, and files that appear under their name only when they are complete.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "support/descriptor.h"
#include "support/file.h"
#include "trainer/core/error.h"

namespace trainer {

// The process lacks memory or file descriptors: no fault of the file.
class Shortage : public Error {
 public:
  using Error::Error;
};

// Throws Error(EX_DATAERR) if there is no such file, Error(EX_OSERR), a Shortage among them, if it
// cannot be opened; each names the path and the reason.  Does not wait for a named pipe's writer.
support::Descriptor OpenForReading(const std::string& path);

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
FileIdentity IdentityOf(const support::Descriptor& file, const std::string& path);
// Of a file that is not open, and that this process may read.  Throws as OpenForReading, and as the
// other one.
FileIdentity IdentityOf(const std::string& path);
// In bytes.  Throws as IdentityOf.
std::uint64_t FileSize(const support::Descriptor& file, const std::string& path);

// Fills `bytes` from `offset`; returns how many were there: fewer only at the end of the file.
// Where it cannot be read (support::MayHelpToReopen) and `reopen` is given, what that returns is
// read once, and where that helps `file` is it from then on.  Throws Error(EX_OSERR) naming `path`,
// and what `reopen` throws.  Safe from several threads at once.
std::size_t ReadAt(const support::Descriptor& file, const std::string& path, std::uint64_t offset,
                   std::span<std::uint8_t> bytes,
                   const std::function<support::Descriptor()>& reopen = {});

// The whole file.  Throws as OpenForReading, Error(EX_DATAERR) also if it is not regular or longer
// than `max_bytes`, and Error(EX_OSERR) if it cannot be read.
std::string ReadWholeFile(const std::string& path,
                          std::uint64_t max_bytes = std::numeric_limits<std::int64_t>::max());

// With what is missing above it.  Throws Error(EX_OSERR) that says what is in its way.
void MakeDirectories(const std::string& directory);
// The same, and it says to give another `option`.
void MakeDirectory(const std::filesystem::path& directory, const std::string& option);

// A durable AtomicFile that throws Error(EX_OSERR) naming `path`.
class NewFile {
 public:
  explicit NewFile(const std::string& path);

  void Write(std::string_view bytes);
  void Write(std::span<const std::uint8_t> bytes);
  // No more writes; all bytes are on the disk when it returns.  The descriptor is closed.
  void Finish();
  // REQUIRES: Finish().
  void Commit();

 private:
  void Check(const char* action, int error) const;

  std::string path_;
  support::AtomicFile file_;
};

// A NewFile of one piece.
void WriteWholeFile(const std::string& path, std::string_view content);

}  // namespace trainer
