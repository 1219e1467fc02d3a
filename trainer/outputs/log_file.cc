// SPDX-License-Identifier: Apache-2.0

#include "trainer/outputs/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "support/counted.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

support::Descriptor OpenForAppending(const std::filesystem::path& path, std::string_view instead) {
  // O_NONBLOCK: a FIFO without a reader in its place must not hang us.
  support::Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
  if (!file.is_open()) RejectFile(path, errno, instead);
  ::fcntl(file.fd(), F_SETFL, O_APPEND);
  return file;
}

// Whether a killed launch has left half a line.
bool EndsWithinLine(const std::filesystem::path& path) {
  const support::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return false;
  struct stat status {};
  char last = '\n';
  if (::fstat(file.fd(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
      ::pread(file.fd(), &last, 1, status.st_size - 1) != 1) {
    last = '\n';
  }
  return last != '\n';
}

}  // namespace

std::function<void(int)> LogDroppedOutput(const Logger& log, const std::string& where,
                                          const std::string& what) {
  return [log, where, what](int error) {
    log->warn("{}: {} are lost: {}; the run continues without them", where, what,
              std::generic_category().message(error));
  };
}

std::function<void(int error)> LogOldText(const Logger& log, const std::string& where) {
  return [log, where](int error) {
    log->warn("{}: cannot be written anew: {}; the run continues, with the old text there", where,
              std::generic_category().message(error));
  };
}

void LogDroppedOutputs(const Logger& log, const std::string& where, std::int64_t count,
                       const std::string& what) {
  if (count > 0) log->warn("{}: {} lost", where, support::Counted(count, what));
}

void RejectFile(const std::filesystem::path& path, int error, std::string_view instead) {
  throw Error(EX_OSERR, "cannot write '" + path.string() +
                            "': " + std::generic_category().message(error) +
                            "; check it, or give " + std::string(instead));
}

LogFile::LogFile(const std::filesystem::path& path, std::string_view instead, const Logger& log)
    : log_(log),
      path_(path.string()),
      file_(OpenForAppending(path, instead)),
      buffer_(file_.fd(), /*is_own=*/true, LogDroppedOutput(log, path_)) {
  // To be written with the first line.
  if (EndsWithinLine(path)) stream_ << '\n';
}

void LogFile::LogDroppedOutputs() const {
  trainer::LogDroppedOutputs(log_, path_, buffer_.lost_lines());
}

}  // namespace trainer
