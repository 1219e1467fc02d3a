// SPDX-License-Identifier: Apache-2.0
//
// Where a rank writes the stacks of its threads: MODEL_DIR/stacks/rank-N.txt
// (control/stacks_request.h has its form).

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/telemetry/thread_stacks.h"

namespace trainer {

struct StacksFileOptions {
  std::filesystem::path model_dir;
  int rank = 0;
  std::string host;         // "": not known
  std::string doing;        // what the rank does: "no progress for 61 s, waiting for other ranks"
  std::uint64_t order = 0;  // 0: nobody has asked
};

// Takes the stacks of all threads of this process and writes them, in a whole file or none, over
// those from before.  Returns them; none where they could not be written.  From any thread; one
// after the other.
std::vector<ThreadStack> WriteStacksFile(const StacksFileOptions& options);

}  // namespace trainer
