// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/stacks.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "ddlctl/stacks_view.h"
#include "ddlctl/status_text.h"
#include "support/file.h"
#include "trainer/control/control_client.h"
#include "trainer/control/stack_dump_request.h"
#include "trainer/core/error.h"
#include "trainer/telemetry/stacks/thread_stacks.h"

namespace ddlctl {
namespace {

namespace fs = std::filesystem;
using trainer::Error;
using trainer::StackDumpRequest;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMaxStacksBytes = std::uint64_t{1} << 24;
constexpr std::chrono::milliseconds kBetweenLooks{200};

// By writing the order where the ranks look for it.  Throws Error(EX_UNAVAILABLE).
std::uint64_t OrderWithoutRankZero(const fs::path& file, const std::string& problem) {
  const std::optional<StackDumpRequest> request = trainer::ReadStackDumpRequest(file);
  const std::uint64_t command = trainer::NextStackDumpCommand(request ? request->command : 0);
  if (!request || trainer::WriteStackDumpCommand(file, command) != 0) {
    throw Error(EX_UNAVAILABLE, problem);
  }
  return command;
}

// Returns the number of the order.
std::uint64_t Order(Session& session, const StacksOptions& options, const fs::path& file) {
  trainer::ControlAnswer answer;
  try {
    answer = session.Ask({trainer::ControlCommand::kStacks});
  } catch (const trainer::NoAnswer& silence) {
    const std::uint64_t command = OrderWithoutRankZero(file, silence.what());
    options.note(std::string(silence.what()) + " The others are asked without it.\n");
    return command;
  }
  if (!answer.rejection.empty()) throw Error(EX_TEMPFAIL, RejectionText(answer));
  return answer.stack_dump_command;
}

// Makes NFS look which files are there, and not remember: something has changed in the directory.
void Touch(const fs::path& directory) {
  const fs::path name = directory / (".ddlctl-" + std::to_string(::getpid()));
  std::error_code ignored;
  fs::create_directory(name, ignored);
  fs::remove(name, ignored);
}

// Reads what is there of those that have not answered yet; returns whether all have.
bool ReadAnswers(const fs::path& directory, std::uint64_t command, std::vector<RankAnswer>& ranks) {
  bool has_all = true;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].stacks) continue;
    const support::WholeFile file = support::ReadWholeFile(
        directory / trainer::StackDumpFileName(static_cast<int>(i)), kMaxStacksBytes);
    std::optional<trainer::RankStackTraces> stacks = trainer::ParseRankStackTraces(file.content);
    if (stacks && stacks->command >= command) ranks[i].stacks = std::move(stacks);
    has_all = has_all && ranks[i].stacks;
  }
  return has_all;
}

}  // namespace

int ShowStacks(Session& session, const StacksOptions& options) {
  const fs::path file = options.results_dir / trainer::kStackDumpRequestName;
  const std::uint64_t command = Order(session, options, file);
  const std::optional<StackDumpRequest> request = trainer::ReadStackDumpRequest(file);
  if (!request) {
    throw Error(EX_UNAVAILABLE, file.string() + ": not written by a ddltraind of this version");
  }
  std::vector<RankAnswer> ranks;
  for (const StackDumpRequest::Rank& rank : request->ranks) {
    ranks.push_back({.host = rank.host, .pid = rank.pid, .stacks = std::nullopt});
  }
  const double seconds = kStacksSeconds + trainer::StackDumpPollSeconds(ranks.size());
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  bool has_all = ReadAnswers(request->directory, command, ranks);
  while (!has_all && Clock::now() < end) {
    std::this_thread::sleep_for(kBetweenLooks);
    Touch(request->directory);
    has_all = ReadAnswers(request->directory, command, ranks);
  }
  for (RankAnswer& rank : ranks) {
    // This is the machine of rank 0.
    if (rank.stacks || rank.host != ranks.front().host) continue;
    rank.state = trainer::StateInKernel("/proc/" + std::to_string(rank.pid));
    if (rank.state.empty()) rank.state = "is gone";
  }
  options.print(options.all_threads ? AllStackTraces(ranks, seconds)
                                    : GroupedStackTraces(ranks, seconds));
  if (!options.all_threads &&
      std::ranges::any_of(ranks, [](const RankAnswer& rank) { return rank.stacks.has_value(); })) {
    options.note("all threads are in " + Harmless(request->directory.string()) +
                 "/rank-N.txt, and in ddlctl stacks --all-threads\n");
  }
  return has_all ? EX_OK : EX_UNAVAILABLE;
}

}  // namespace ddlctl
