// SPDX-License-Identifier: Apache-2.0
//
// The codes that every warning and every refusal of ddlrun carries, "[WARN DDL-21-4] text", for
// people who search logs.  A code never changes its meaning.  The first number is the family:
//
//   2    IBM's own: only numbers that were seen in logs of IBM's ddlrun, with the meaning they had
//   20   errors; the second number is the exit code
//   21   warnings of planning
//   22   warnings about the command line
//
// doc/reference/exit-codes.md lists all codes; a test compares that list with this table.  Pure.

#pragma once

#include <string>
#include <vector>

#include "launcher/base/error.h"

namespace launcher {

enum class Message {
  kUnexpectedError,
  kNoConnectionTests,
  kJobFailed,
  kCommandLine,
  kInputFile,
  kNotStarted,
  kOperatingSystem,
  kConfiguration,
  kGpusNotSeen,
  kGpusNotRequested,
  kGpusShared,
  kNotBound,
  kHostListLeftOut,
  kNodeLeftOut,
  kMasterAddrNotInJob,
  kSegmentTorn,
  kNoTopology,
  kFewerNodes,
  kComponentWithoutGpus,
  kStartedSeveralTimes,
  kArgumentReplaced,
  kArgumentLeftOut,
  kArgumentNotUsed,
};

struct MessageClass {
  Message message;
  const char* level;  // "ERROR" or "WARN"
  int family;
  int number;
  const char* meaning;
};

// Ordered by family and number.
const std::vector<MessageClass>& MessageTable();

// Behind a refusal because of variables that may be of another job: sbatch hands its whole
// environment on.
inline constexpr char kMaybeInherited[] =
    "; a job that was submitted from within another one has that one's variables: submit it with "
    "(unset \"${!SLURM_@}\"; sbatch ...)";

// "DDL-20-64".
std::string CodeOf(const MessageClass& row);

// "[ERROR DDL-20-64] text".
std::string Coded(Message message, const std::string& text);

// What ddlrun and its shim print when they end with `error`, without the program's name.
std::string CodedError(const LaunchError& error);
// The same for any other exception, which is a mistake of ours.
std::string CodedUnexpected(const std::string& what);

}  // namespace launcher
