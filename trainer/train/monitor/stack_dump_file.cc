// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/monitor/stack_dump_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <system_error>

#include "support/file.h"
#include "trainer/control/stack_dump_request.h"

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

}  // namespace trainer
