// SPDX-License-Identifier: Apache-2.0
//
// The small file in --results_dir by which ddlctl finds a training: on which host and in which job
// it runs, and its socket there; once it has ended, what it said last.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/control/run_status.h"

namespace trainer {

inline constexpr char kControlAddressName[] = ".ddltraind.control";

struct ControlAddress {
  std::string host;  // as the machine names itself
  std::string node;  // as the job names it, or ""
  std::string job;   // Slurm's number of it, or ""
  std::int64_t pid = 0;
  std::string socket;             // its absolute path
  std::optional<RunStatus> last;  // of a training that has ended in order
};

std::string FormatAddress(const ControlAddress& address);
// Throws Error(EX_DATAERR) for any other text, also for one of another protocol, which it names,
// and for names that are none of a host or a job: they become arguments of srun.
ControlAddress ParseAddress(std::string_view text);

// That of the training in `results_dir`; nullopt if there has been none.  Throws Error(EX_OSERR) or
// Error(EX_DATAERR) that names the file.
std::optional<ControlAddress> ReadAddress(const std::filesystem::path& results_dir);

}  // namespace trainer
