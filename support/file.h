// SPDX-License-Identifier: Apache-2.0
//
// Files read whole and written whole.  Nothing here throws for what a file system does: an error is
// errno, 0 for none, and each program makes its own message of it.
//
// Functions are safe from any thread; an AtomicFile is not.

#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "support/descriptor.h"

namespace support {

// How much was read or written, and why it was not more.
struct Transfer {
  std::size_t bytes = 0;
  int error = 0;
};

// Goes on after signals and short counts.  Fewer bytes without an error: the file ends there.
Transfer ReadAt(int fd, std::uint64_t offset, std::span<std::byte> bytes);
Transfer WriteAll(int fd, std::string_view bytes);

// fsync.  0 also on a file system that does not know it (some of FUSE, some of CIFS): what it has
// written is all that can be had there.
int SyncFile(int fd);

// Makes `directory` with what is missing above it.  "", or why that cannot be: with what is in its
// place, or above it, where that is a file, or a link to nothing, which the system calls "File
// exists".
std::string MakeDirectories(const std::filesystem::path& directory);
// Why the directory cannot be made: MakeDirectories' words for errno `error`.
std::string DescribeObstacle(const std::filesystem::path& directory, int error);

// Errno `error` of writing `path`, in words; where a file system has room, but for no more files,
// it says so, since ENOSPC alone does not.
std::string DescribeWriteError(const std::filesystem::path& path, int error);

enum class FileKind {
  kRegular,  // nothing else; a pipe in its place is not waited for
  kAny,      // also what a shell puts in the place of a file: a pipe, /dev/stdin
};

enum class ReadProblem { kNone, kOpen, kRead, kNotRegular, kTooLong };

struct WholeFile {
  ReadProblem problem = ReadProblem::kNone;
  int error = 0;            // errno of kOpen and kRead
  std::uint64_t bytes = 0;  // of a regular file that is too long
  std::string content;      // "" with any problem
};

// Whether a file that reading has failed of may be read after it was opened by its name again: that
// of an NFS server that was started anew (ESTALE), or of a disk that was away (EIO).
bool MayHelpToReopen(int error);

// Not mapped: a mapped file that shrinks or sits on a bad disk is a SIGBUS, not an error.
// Where that may help it is opened twice.
WholeFile ReadWholeFile(const std::filesystem::path& path, std::uint64_t max_bytes,
                        FileKind kind = FileKind::kRegular);
// What is left of the open file.
WholeFile ReadWholeFile(int fd, std::uint64_t max_bytes, FileKind kind = FileKind::kRegular);

struct AtomicFileOptions {
  // On the disk before it takes its place, so that a crash of the machine leaves it whole too.
  bool is_durable = false;
  mode_t mode = 0666;
  int directory = AT_FDCWD;  // of a path that is relative
};

// A file that is written as .NAME.tmp beside its place and takes its place, also that of an older
// file, when it is whole: whoever reads NAME finds all of the one or all of the other.  Without
// Commit nothing is left behind; what a killed process has left is overwritten by the next.
// REQUIRES: no two write the same file at once.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path, const AtomicFileOptions& options = {});
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Each does nothing after an error, and returns the first one.
  int error() const { return error_; }
  int Write(std::string_view bytes);
  int Finish();  // no more writes; it is closed
  int Commit();  // after Finish(), which it calls where nobody has

 private:
  int OpenNew();

  const AtomicFileOptions options_;
  const std::filesystem::path path_;
  std::filesystem::path temporary_;
  Descriptor file_;
  int error_ = 0;
  bool is_there_ = false;  // the temporary file
};

// An AtomicFile of one piece.
int ReplaceFile(const std::filesystem::path& path, std::string_view content,
                const AtomicFileOptions& options = {});

}  // namespace support
