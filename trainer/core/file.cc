// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace trainer {
namespace {

std::int64_t Nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

[[noreturn]] void RejectToOpen(const std::string& path, int error) {
  const std::string message = "cannot open " + path + ": " + std::generic_category().message(error);
  if (error == ENOMEM || error == EMFILE || error == ENFILE) throw Shortage(EX_OSERR, message);
  throw Error(error == ENOENT ? EX_DATAERR : EX_OSERR, message);
}

[[noreturn]] void RejectToRead(const std::string& path, int error) {
  const Error failure = OsError("cannot read " + path, error);
  if (error == ENOMEM) throw Shortage(EX_OSERR, failure.what());
  throw failure;
}

Error NotRegular(const std::string& path) {
  const bool is_pipe_of_shell = path.starts_with("/dev/fd/");
  return {EX_DATAERR, path + " is not a regular file" +
                          (is_pipe_of_shell ? ": write what <(...) prints to one" : "")};
}

}  // namespace

support::Descriptor OpenForReading(const std::string& path) {
  support::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) RejectToOpen(path, errno);
  return file;
}

namespace {

FileIdentity IdentityBy(const struct stat& status, const std::string& path) {
  if (!S_ISREG(status.st_mode)) throw NotRegular(path);
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
          Nanoseconds(status.st_mtim), Nanoseconds(status.st_ctim)};
}

}  // namespace

FileIdentity IdentityOf(const support::Descriptor& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.fd(), &status) != 0) throw OsError("cannot read the size of " + path, errno);
  return IdentityBy(status, path);
}

FileIdentity IdentityOf(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || ::access(path.c_str(), R_OK) != 0) {
    RejectToOpen(path, errno);
  }
  return IdentityBy(status, path);
}

std::uint64_t FileSize(const support::Descriptor& file, const std::string& path) {
  return IdentityOf(file, path).bytes;
}

std::size_t ReadAt(const support::Descriptor& file, const std::string& path, std::uint64_t offset,
                   std::span<std::uint8_t> bytes,
                   const std::function<support::Descriptor()>& reopen) {
  const support::Transfer read = support::ReadAt(file.fd(), offset, std::as_writable_bytes(bytes));
  if (read.error == 0) return read.bytes;
  if (!reopen || !support::MayHelpToReopen(read.error)) {
    throw OsError("cannot read " + path, read.error);
  }
  const support::Descriptor again = reopen();
  const support::Transfer second =
      support::ReadAt(again.fd(), offset, std::as_writable_bytes(bytes));
  if (second.error != 0) {
    throw OsError("cannot read " + path + ", not even after it was opened again", read.error);
  }
  // From here on it is this one, also for other threads.
  ::dup3(again.fd(), file.fd(), O_CLOEXEC);
  return second.bytes;
}

std::string ReadWholeFile(const std::string& path, std::uint64_t max_bytes) {
  support::WholeFile file = support::ReadWholeFile(path, max_bytes);
  switch (file.problem) {
    case support::ReadProblem::kNone:
      break;
    case support::ReadProblem::kOpen:
      RejectToOpen(path, file.error);
    case support::ReadProblem::kRead:
      RejectToRead(path, file.error);
    case support::ReadProblem::kNotRegular:
      throw NotRegular(path);
    case support::ReadProblem::kTooLong:
      throw Error(EX_DATAERR, path + " has " + std::to_string(file.bytes) +
                                  " bytes, more than the " + std::to_string(max_bytes) +
                                  " that such a file may have");
  }
  return std::move(file.content);
}

void MakeDirectories(const std::string& directory) {
  const std::string obstacle = support::MakeDirectories(directory);
  if (!obstacle.empty()) {
    throw Error(EX_OSERR, "cannot make the directory " + directory + ": " + obstacle);
  }
}

void MakeDirectory(const std::filesystem::path& directory, const std::string& option) {
  const std::string obstacle = support::MakeDirectories(directory);
  if (!obstacle.empty()) {
    throw Error(EX_OSERR, "cannot make the directory '" + directory.string() + "': " + obstacle +
                              "; give another " + option);
  }
}

NewFile::NewFile(const std::string& path) : path_(path), file_(path, {.is_durable = true}) {
  Check("create", file_.error());
}

void NewFile::Check(const char* action, int error) const {
  if (error == 0) return;
  throw Error(EX_OSERR, std::string("cannot ") + action + " " + path_ + ": " +
                            support::DescribeWriteError(path_, error));
}

void NewFile::Write(std::string_view bytes) { Check("write", file_.Write(bytes)); }

void NewFile::Write(std::span<const std::uint8_t> bytes) {
  Write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void NewFile::Finish() { Check("write", file_.Finish()); }

void NewFile::Commit() { Check("give its name to", file_.Commit()); }

void WriteWholeFile(const std::string& path, std::string_view content) {
  NewFile file(path);
  file.Write(content);
  file.Finish();
  file.Commit();
}

}  // namespace trainer
