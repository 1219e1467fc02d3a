// SPDX-License-Identifier: Apache-2.0
//
// A log of lines in a file of its own.  A later launch adds to what the earlier ones have written,
// on a line of its own where one of them was killed in the middle of a line.  Lines that a full
// disk loses are told to the log for people: a training does not end for them.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "support/descriptor.h"
#include "trainer/telemetry/text/line_output.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {

// Tells `log` that lines, or what else `what` is, of `where` are lost.
std::function<void(int error)> LogDroppedOutput(const Logger& log, const std::string& where,
                                                const std::string& what = "lines");
// For ReplacedFile: tells `log` that files in `where` have an old text.
std::function<void(int error)> LogOldText(const Logger& log, const std::string& where);
// How many were lost, if any were.
void LogDroppedOutputs(const Logger& log, const std::string& where, std::int64_t count,
                       const std::string& what = "line");

// Throws Error(EX_OSERR) that names `path`, errno `error`, and says to give `instead` ("another
// --mllog").
[[noreturn]] void RejectFile(const std::filesystem::path& path, int error,
                             std::string_view instead);

class LogFile {
 public:
  // Throws as RejectFile does if it cannot be written.
  LogFile(const std::filesystem::path& path, std::string_view instead, const Logger& log);
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  std::ostream& stream() { return stream_; }
  // To be called at the end.
  void LogDroppedOutputs() const;

 private:
  const Logger log_;
  const std::string path_;
  const support::Descriptor file_;
  LineOutput buffer_;
  std::ostream stream_{&buffer_};
};

}  // namespace trainer
