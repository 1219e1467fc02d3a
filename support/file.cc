// SPDX-License-Identifier: Apache-2.0

#include "support/file.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <string>
#include <system_error>
#include <utility>

namespace support {
namespace {

constexpr std::size_t kReadBytes = 65536;

WholeFile Failed(ReadProblem problem, int error) {
  WholeFile file;
  file.problem = problem;
  file.error = error;
  return file;
}

// read(2) until `bytes` are full or the file ends.
Transfer ReadOn(int fd, std::span<char> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {done, errno};
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return {done, 0};
}

// A regular file has its size; it may shrink meanwhile, and what is missing is found by who parses
// it.
WholeFile ReadRegular(int fd, std::uint64_t size) {
  WholeFile file;
  try {
    file.content.resize(static_cast<std::size_t>(size));
  } catch (const std::bad_alloc&) {
    return Failed(ReadProblem::kRead, ENOMEM);
  }
  const Transfer read = ReadOn(fd, file.content);
  if (read.error != 0) return Failed(ReadProblem::kRead, read.error);
  file.content.resize(read.bytes);
  return file;
}

WholeFile ReadStream(int fd, std::uint64_t max_bytes) {
  WholeFile file;
  for (;;) {
    const std::size_t before = file.content.size();
    file.content.resize(before + kReadBytes);
    const Transfer read = ReadOn(fd, std::span(file.content).subspan(before));
    if (read.error != 0) return Failed(ReadProblem::kRead, read.error);
    file.content.resize(before + read.bytes);
    if (file.content.size() > max_bytes) return Failed(ReadProblem::kTooLong, 0);
    if (read.bytes < kReadBytes) return file;
  }
}

std::filesystem::path HiddenName(const std::filesystem::path& path) {
  return path.parent_path() / ("." + path.filename().string() + ".tmp");
}

}  // namespace

Transfer ReadAt(int fd, std::uint64_t offset, std::span<std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {done, errno};
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return {done, 0};
}

Transfer WriteAll(int fd, std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {done, errno};
    done += static_cast<std::size_t>(count);
  }
  return {done, 0};
}

std::string MakeDirectories(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  return error ? DescribeObstacle(directory, error.value()) : "";
}

std::string DescribeObstacle(const std::filesystem::path& directory, int error) {
  namespace fs = std::filesystem;
  for (fs::path part = directory; part.has_relative_path(); part = part.parent_path()) {
    std::error_code ignored;
    const fs::file_type named = fs::symlink_status(part, ignored).type();
    if (named == fs::file_type::not_found) continue;
    const fs::file_type type = fs::status(part, ignored).type();
    if (named == fs::file_type::symlink && type == fs::file_type::not_found) {
      return part.string() + " is a link to " + fs::read_symlink(part, ignored).string() +
             ", which is not there (make that directory)";
    }
    if (type == fs::file_type::regular) return part.string() + " is a file, not a directory";
    break;
  }
  return std::generic_category().message(error);
}

std::string DescribeWriteError(const std::filesystem::path& path, int error) {
  const std::string words = std::generic_category().message(error);
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
  struct statvfs left = {};
  if (error != ENOSPC || ::statvfs(directory.c_str(), &left) != 0) return words;
  const bool counts_files = left.f_files > 0;  // Btrfs does not
  const bool lacks_files = counts_files && left.f_favail == 0 && left.f_bavail > 0;
  return lacks_files ? words + " (for no more files: df -i)" : words;
}

int SyncFile(int fd) {
  if (::fsync(fd) == 0 || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) return 0;
  return errno;
}

bool MayHelpToReopen(int error) { return error == ESTALE || error == EIO; }

WholeFile ReadWholeFile(int fd, std::uint64_t max_bytes, FileKind kind) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return Failed(ReadProblem::kRead, errno);
  if (!S_ISREG(status.st_mode)) {
    return kind == FileKind::kRegular ? Failed(ReadProblem::kNotRegular, 0)
                                      : ReadStream(fd, max_bytes);
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size <= max_bytes) return ReadRegular(fd, size);
  WholeFile file = Failed(ReadProblem::kTooLong, 0);
  file.bytes = size;
  return file;
}

WholeFile ReadWholeFile(const std::filesystem::path& path, std::uint64_t max_bytes, FileKind kind) {
  const int wait = kind == FileKind::kRegular ? O_NONBLOCK : 0;
  const auto read = [&] {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | wait));
    if (!file.is_open()) return Failed(ReadProblem::kOpen, errno);
    return ReadWholeFile(file.fd(), max_bytes, kind);
  };
  WholeFile file = read();
  return MayHelpToReopen(file.error) ? read() : file;
}

AtomicFile::AtomicFile(std::filesystem::path path, const AtomicFileOptions& options)
    : options_(options),
      path_(std::move(path)),
      temporary_(HiddenName(path_)),
      file_(OpenNew()),
      error_(file_.is_open() ? 0 : errno),
      is_there_(file_.is_open()) {}

// Never a file that somebody else has made, who would go on writing to it.  One that cannot be
// removed, as in a directory that all may write, is left: the name of this process is tried then.
int AtomicFile::OpenNew() {
  const auto open_new = [this] {
    ::unlinkat(options_.directory, temporary_.c_str(), 0);
    return ::openat(options_.directory, temporary_.c_str(),
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, options_.mode);
  };
  const int fd = open_new();
  if (fd >= 0 || errno != EEXIST) return fd;
  temporary_ += "-" + std::to_string(::getpid());
  return open_new();
}

AtomicFile::~AtomicFile() {
  if (is_there_) ::unlinkat(options_.directory, temporary_.c_str(), 0);
}

int AtomicFile::Write(std::string_view bytes) {
  if (error_ == 0) error_ = WriteAll(file_.fd(), bytes).error;
  return error_;
}

int AtomicFile::Finish() {
  if (error_ == 0 && options_.is_durable) error_ = SyncFile(file_.fd());
  const int closing = file_.Close();
  if (error_ == 0) error_ = closing;
  return error_;
}

int AtomicFile::Commit() {
  if (file_.is_open()) Finish();
  if (error_ != 0) return error_;
  if (::renameat(options_.directory, temporary_.c_str(), options_.directory, path_.c_str()) != 0) {
    error_ = errno;
  } else {
    is_there_ = false;
  }
  return error_;
}

int ReplaceFile(const std::filesystem::path& path, std::string_view content,
                const AtomicFileOptions& options) {
  AtomicFile file(path, options);
  file.Write(content);
  return file.Commit();
}

}  // namespace support
