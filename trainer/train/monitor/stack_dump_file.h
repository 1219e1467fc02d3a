// SPDX-License-Identifier: Apache-2.0
//
// Where a rank writes the stacks of its threads: MODEL_DIR/stacks/rank-N.txt
// (control/stack_dump_request.h has its form).

#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/telemetry/stacks/thread_stacks.h"

namespace trainer {

struct StackDumpOptions {
  std::filesystem::path model_dir;
  int rank = 0;
  std::string host;           // "": not known
  std::string doing;          // what the rank does: "no progress for 61 s, waiting for other ranks"
  std::uint64_t command = 0;  // 0: nobody has asked
  std::chrono::milliseconds answer_time = kStackAnswerTime;  // of a thread
};

// Takes the stacks of all threads of this process and writes them, in a whole file or none, over
// those from before.  Returns them; none where they could not be written.  Throws nothing of its
// own, but there may be no memory.  From any thread; one after the other, so that it may last as
// long as a file system hangs.
std::vector<ThreadStack> WriteStackDumpFile(const StackDumpOptions& options);

}  // namespace trainer
