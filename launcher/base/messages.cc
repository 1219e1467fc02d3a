// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/messages.h"

#include <algorithm>

namespace launcher {
namespace {

constexpr char kError[] = "ERROR";
constexpr char kWarn[] = "WARN";
constexpr int kErrorFamily = 20;

// The message of a refusal that ends with `exit_code`.  An exit code without a row is not for the
// user to mend, and so a mistake of ours.
Message MessageOfExitCode(int exit_code) {
  for (const MessageClass& row : MessageTable()) {
    if (row.family == kErrorFamily && row.number == exit_code) return row.message;
  }
  return Message::kUnexpectedError;
}

}  // namespace

const std::vector<MessageClass>& MessageTable() {
  static const std::vector<MessageClass> table = {
      {Message::kUnexpectedError, kError, 2, 0, "a mistake of ours (IBM's number)"},
      {Message::kNoConnectionTests, kWarn, 2, 17,
       "the connections between the nodes are not tested (IBM's number)"},
      {Message::kJobFailed, kError, kErrorFamily, 1, "a rank failed; the line names the first one"},
      {Message::kCommandLine, kError, kErrorFamily, EX_USAGE, "the command line"},
      {Message::kInputFile, kError, kErrorFamily, EX_DATAERR,
       "a file that was given is wrong or cannot be read"},
      {Message::kNotStarted, kError, kErrorFamily, EX_UNAVAILABLE,
       "a rank, or what starts ranks, could not be started"},
      {Message::kOperatingSystem, kError, kErrorFamily, EX_OSERR,
       "the operating system refused something"},
      {Message::kConfiguration, kError, kErrorFamily, EX_CONFIG,
       "the allocation or the site file is wrong, or what was asked for does not fit it"},
      {Message::kGpusNotSeen, kWarn, 21, 1, "fewer GPUs are seen on a node than were granted"},
      {Message::kGpusNotRequested, kWarn, 21, 2,
       "a node has GPUs, but the job asked for tasks or ranks only"},
      {Message::kGpusShared, kWarn, 21, 4, "several ranks on one GPU"},
      {Message::kNotBound, kWarn, 21, 5, "ranks are not bound: too few cores"},
      {Message::kHostListLeftOut, kWarn, 21, 6,
       "`DDL_HOST_LIST` is not set: it is longer than a variable may be"},
      {Message::kNodeLeftOut, kWarn, 21, 7,
       "a node that a check found bad is left out (`--spare-nodes`, `--min-nodes`)"},
      {Message::kMasterAddrNotInJob, kWarn, 21, 8, "`MASTER_ADDR` is no host of the job"},
      {Message::kSegmentTorn, kWarn, 21, 9,
       "the ranks of one segment (`SLURM_JOB_SEGMENT_SIZE`) are on several blocks"},
      {Message::kNoTopology, kWarn, 21, 10,
       "`--rank-order=topology`, but Slurm knows no switch or block of these nodes"},
      {Message::kFewerNodes, kWarn, 21, 11,
       "nodes were lost or left out, and the ranks run on those that are left (`--min-nodes`)"},
      {Message::kComponentWithoutGpus, kWarn, 21, 12,
       "a component of a heterogeneous job gets no ranks: it has no GPUs, and another one has"},
      {Message::kStartedSeveralTimes, kWarn, 21, 13,
       "`ddlrun` is one of several processes of `mpirun` or `mpiexec`, each of which starts all "
       "ranks"},
      {Message::kArgumentReplaced, kWarn, 22, 1,
       "an argument of IBM's mpirun in `--mpiarg` was replaced by what Open MPI has for it"},
      {Message::kArgumentLeftOut, kWarn, 22, 2,
       "an argument of IBM's mpirun in `--mpiarg` was left out"},
      {Message::kArgumentNotUsed, kWarn, 22, 3,
       "a part of `--mpiarg` is not used, because ranks are not started by mpirun; or `--srunarg`, "
       "`--pmi`, because not by srun"},
  };
  return table;
}

std::string CodeOf(const MessageClass& row) {
  return "DDL-" + std::to_string(row.family) + "-" + std::to_string(row.number);
}

std::string Coded(Message message, const std::string& text) {
  const auto& table = MessageTable();
  const auto row = std::find_if(table.begin(), table.end(), [message](const MessageClass& entry) {
    return entry.message == message;
  });
  return std::string("[") + row->level + " " + CodeOf(*row) + "] " + text;
}

std::string CodedError(const LaunchError& error) {
  const Message message = MessageOfExitCode(error.exit_code());
  return message == Message::kUnexpectedError ? CodedUnexpected(error.what())
                                              : Coded(message, error.what());
}

std::string CodedUnexpected(const std::string& what) {
  return Coded(Message::kUnexpectedError, "Unexpected Error: " + what);
}

}  // namespace launcher
