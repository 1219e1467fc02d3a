// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "trainer/core/error.h"

namespace trainer {
namespace {

std::int64_t Nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileDescriptor OpenForReading(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    throw Error(EX_DATAERR, "cannot open " + path + ": " + std::generic_category().message(errno));
  }
  return file;
}

FileIdentity IdentityOf(const FileDescriptor& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw OsError("cannot read the size of " + path, errno);
  if (!S_ISREG(status.st_mode)) throw Error(EX_DATAERR, path + " is not a regular file");
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
          Nanoseconds(status.st_mtim), Nanoseconds(status.st_ctim)};
}

std::uint64_t FileSize(const FileDescriptor& file, const std::string& path) {
  return IdentityOf(file, path).bytes;
}

std::size_t ReadAt(const FileDescriptor& file, const std::string& path, std::uint64_t offset,
                   std::span<std::uint8_t> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(file.get(), bytes.data() + done, bytes.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw OsError("cannot read " + path, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::string ReadWholeFile(const std::string& path, std::uint64_t max_bytes) {
  const FileDescriptor file = OpenForReading(path);
  const std::uint64_t size = FileSize(file, path);
  if (size > max_bytes) {
    throw Error(EX_DATAERR, path + " has " + std::to_string(size) + " bytes, more than the " +
                                std::to_string(max_bytes) + " that such a file may have");
  }
  std::string text(size, '\0');
  text.resize(ReadAt(file, path, 0, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}));
  return text;
}

NewFile::NewFile(std::string path) : path_(std::move(path)) {
  const std::filesystem::path target(path_);
  std::filesystem::path hidden(".");
  hidden += target.filename();
  hidden += ".tmp";
  temporary_ = (target.parent_path() / hidden).string();
  file_ = FileDescriptor(
      ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file_) throw OsError("cannot create " + path_, errno);
}

NewFile::~NewFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void NewFile::Write(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw OsError("cannot write " + path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void NewFile::Finish() {
  if (::fsync(file_.get()) != 0) throw OsError("cannot write " + path_, errno);
  file_ = FileDescriptor();
}

void NewFile::Commit() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw OsError("cannot rename " + temporary_ + " to " + path_, errno);
  }
  temporary_.clear();
}

}  // namespace trainer
