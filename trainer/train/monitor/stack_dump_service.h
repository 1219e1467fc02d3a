// SPDX-License-Identifier: Apache-2.0
//
// Writes the stacks of a rank when somebody asks for those of all (control/stack_dump_request.h),
// also while the rank hangs: by a thread of its own, which has nothing to do with the loop.  What
// the loop computes stays the same; its system calls may come back early.
//
// Threads: as the functions say.

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "trainer/telemetry/stacks/thread_stacks.h"

namespace trainer {

// Where a rank writes the stacks of its threads: MODEL_DIR/stacks/rank-N.txt
// (control/stack_dump_request.h has its form).
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

struct StackDumpServiceOptions {
  std::filesystem::path request;  // the file that all ranks look at
  std::filesystem::path model_dir;
  int rank = 0;
  std::string host;  // of this rank
  double seconds_between_looks = 1;
  // What the rank does, or null; called from a thread of the object.
  std::function<std::string()> doing;
  std::chrono::milliseconds answer_time = kStackAnswerTime;  // of a thread
};

class StackDumpService {
 public:
  // Looks at the file from here on; orders that it has now count.  Throws as StartThread does.
  explicit StackDumpService(StackDumpServiceOptions options);
  ~StackDumpService();
  StackDumpService(const StackDumpService&) = delete;
  StackDumpService& operator=(const StackDumpService&) = delete;

  // Asks all ranks, this one among them; on rank 0 alone.  Returns the number of the order, and
  // waits for nothing: the file is written by the thread of the object, which tries it again at
  // each look.  From any thread.
  std::uint64_t Ask();

 private:
  void Run();
  bool Look(std::uint64_t requested);
  void Answer(std::uint64_t command);

  const StackDumpServiceOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_ending_ = false;
  std::uint64_t requested_ = 0;  // by Ask
  std::uint64_t written_ = 0;    // of these, what is in the file
  std::uint64_t answered_ = 0;   // by Run alone
  std::jthread thread_;          // last: starts when all the rest is there
};

}  // namespace trainer
