// SPDX-License-Identifier: Apache-2.0
//
// What ddlctl and a training say to each other: one line of JSON there, one line back.  Each has
// the number of the protocol, which changes with the meaning of any of them.
//   {"protocol":1,"do":"status"}          also pause, resume, checkpoint, evaluate, stop, stacks
//   {"protocol":1,"do":"set","display_every":5}
//   {"protocol":1,"status":{...}}         what is so now; an order is taken then, not yet obeyed
//   {"protocol":1,"stack_dump_command":17,"status":{...}}    to stacks: what the ranks' files will
//   have
//   {"protocol":1,"refused":"...","status":{...}}
// Pure.

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/control/run_status.h"

namespace trainer {

inline constexpr int kControlProtocol = 1;
// Of a line, without its end.
inline constexpr std::size_t kMaxRequestBytes = 4096;
inline constexpr std::size_t kMaxAnswerBytes = 65536;
// Of display_every, as --display_every has it.
inline constexpr std::int64_t kMaxDisplayEvery = 2147483647;

struct ControlRequest {
  std::optional<ControlCommand> command;  // nullopt: the status alone
  std::int64_t display_every = 0;         // steps, from 1, of kSet
};

struct ControlAnswer {
  std::string rejection = {};  // "": the order was taken
  RunStatus status = {};
  // Of kStacks: the number of the order (control/stack_dump_request.h); 0: none.
  std::uint64_t stack_dump_command = 0;
};

// Lines without their ends.
std::string FormatRequest(const ControlRequest& request);
std::string FormatAnswer(const ControlAnswer& answer);

// What came of a line: a request, or why it is none.
struct ParsedRequest {
  std::optional<ControlRequest> request;
  std::string problem;
};
// Any bytes may come.  A message that has anything else than what stands above is none.
ParsedRequest ParseRequest(std::string_view line);

// Throws Error(EX_DATAERR) for a line that is no answer in this protocol.
ControlAnswer ParseAnswer(std::string_view line);

// The small file in --results_dir by which ddlctl finds a training: on which host and in which job
// it runs, and its socket there; once it has ended, what it said last.

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
