// SPDX-License-Identifier: Apache-2.0
//
// The one exception of the trainer, of which two kinds are for callers who can do with less.  It
// ends the job: main prints what() and exits with exit_code().  What is expected (end of data, no
// checkpoint yet) is a return value instead; a broken invariant of ours is DDL_CHECK. what() is one
// line that says what is wrong, where (file, offset, rank) and what to do.

#pragma once

#include <sysexits.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace trainer {

class Error : public std::runtime_error {
 public:
  // `exit_code` is one of EX_USAGE, EX_DATAERR, EX_UNAVAILABLE, EX_SOFTWARE, EX_OSERR, EX_TEMPFAIL,
  // EX_CONFIG (doc/reference/exit-codes.md has the table).
  Error(int exit_code, const std::string& message)
      : std::runtime_error(message), exit_code_(exit_code) {}

  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// EX_OSERR: memory is short, so that less of what was wanted may do.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(const std::string& message) : Error(EX_OSERR, message) {}
};

// EX_SOFTWARE: a loss, a weight or a statistic is NaN or infinite, so that an earlier state may do.
class NotFinite : public Error {
 public:
  explicit NotFinite(const std::string& message) : Error(EX_SOFTWARE, message) {}
};

// What has gone wrong on one rank while the weights are sound.  Every rank throws one at the same
// place, so that a checkpoint can be written together before the run ends.
class RankFault : public Error {
 public:
  enum class Whose : std::uint8_t { kOwn, kOfPeer };
  RankFault(int exit_code, const std::string& message, Whose whose)
      : Error(exit_code, message), whose_(whose) {}

  Whose whose() const { return whose_; }

 private:
  Whose whose_;
};

// An EX_OSERR error: "<action>: <strerror(error_number)>".
Error OsError(const std::string& action, int error_number);

namespace detail {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}  // namespace detail

}  // namespace trainer

// For our own mistakes only, never for input: throws an EX_SOFTWARE error that names file, line and
// condition.
#define DDL_CHECK(condition)                                                          \
  do {                                                                                \
    if (!(condition)) ::trainer::detail::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)
