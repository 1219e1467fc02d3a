// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/monitor/stack_dump_service.h"

#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <system_error>
#include <utility>

#include "support/file.h"
#include "trainer/control/stack_dump_request.h"
#include "trainer/core/thread.h"

namespace trainer {

std::vector<ThreadStack> WriteStackDumpFile(const StackDumpOptions& options) {
  namespace fs = std::filesystem;
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  std::vector<ThreadStack> stacks = CollectThreadStacks(options.answer_time);
  const fs::path directory = options.model_dir / kStackDumpDirectoryName;
  const std::string doing = options.doing.empty() ? "" : ": " + options.doing;
  const std::string text = FormatRankStackTraces(
      {.headline = fmt::format("rank {} on {}, process {}{}", options.rank,
                               options.host.empty() ? "its node" : options.host, ::getpid(), doing),
       .command = options.command,
       .stacks = StacksAsText(stacks)});
  std::error_code ignored;  // then it cannot be written either
  fs::create_directories(directory, ignored);
  if (support::ReplaceFile(directory / StackDumpFileName(options.rank), text) != 0) stacks.clear();
  return stacks;
}

StackDumpService::StackDumpService(StackDumpServiceOptions options) : options_(std::move(options)) {
  PrepareThreadStacks();
  thread_ = StartThread("the thread that writes stacks for ddlctl", [this] { Run(); });
}

StackDumpService::~StackDumpService() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
}

std::uint64_t StackDumpService::Ask() {
  std::uint64_t command = 0;
  {
    const std::lock_guard lock(mutex_);
    command = requested_ = NextStackDumpCommand(requested_);
  }
  changed_.notify_one();
  return command;
}

// Files are touched without the lock: a file system that hangs must not stop those who ask.
void StackDumpService::Run() {
  const std::chrono::duration<double> pause(options_.seconds_between_looks);
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    const std::uint64_t requested = requested_;
    const bool is_new = requested != written_;
    lock.unlock();
    const bool is_done = Look(is_new ? requested : 0);
    lock.lock();
    if (is_done) written_ = requested;
    changed_.wait_for(lock, pause, [&] { return is_ending_ || requested_ != requested; });
  }
}

// Writes what was `requested` into the file, if it is not 0, and answers what is new.  False if it
// could not be written: the other ranks have not heard of it.  A training does not end for this.
bool StackDumpService::Look(std::uint64_t requested) {
  try {
    const bool is_written =
        requested == 0 || WriteStackDumpCommand(options_.request, requested) == 0;
    const std::uint64_t command =
        requested != 0 ? requested : ReadStackDumpCommand(options_.request);
    if (command != 0 && command != answered_) Answer(command);
    return is_written;
  } catch (const std::exception&) {
    return false;
  }
}

void StackDumpService::Answer(std::uint64_t command) {
  answered_ = command;
  WriteStackDumpFile({.model_dir = options_.model_dir,
                      .rank = options_.rank,
                      .host = options_.host,
                      .doing = options_.doing ? options_.doing() : "",
                      .command = command,
                      .answer_time = options_.answer_time});
}

}  // namespace trainer
