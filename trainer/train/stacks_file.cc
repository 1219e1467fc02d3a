// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/stacks_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <mutex>
#include <span>
#include <system_error>

#include "trainer/checkpoint/durable_file.h"
#include "trainer/control/stacks_request.h"
#include "trainer/core/error.h"

namespace trainer {

std::vector<ThreadStack> WriteStacksFile(const StacksFileOptions& options) {
  namespace fs = std::filesystem;
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  std::vector<ThreadStack> stacks = CollectThreadStacks();
  const fs::path folder = options.model_dir / kStacksFolderName;
  const fs::path file = folder / StacksFileName(options.rank);
  const fs::path part = file.string() + ".part";
  const std::string doing = options.doing.empty() ? "" : ": " + options.doing;
  const std::string text = FormatRankStacks(
      {.headline = fmt::format("rank {} on {}, process {}{}", options.rank,
                               options.host.empty() ? "its node" : options.host, ::getpid(), doing),
       .order = options.order,
       .stacks = StacksAsText(stacks)});
  std::error_code ignored;
  try {
    const WriteHook none;
    const WriteContext context = {none, "another --model_dir"};
    fs::create_directories(folder, ignored);
    fs::remove(part, ignored);
    const std::array pieces = {std::as_bytes(std::span(text))};
    WriteNewFile(part, pieces, context);
    Rename(part, file, context);
    SyncDirectory(folder, context);
  } catch (const Error&) {
    stacks.clear();
  }
  return stacks;
}

}  // namespace trainer
