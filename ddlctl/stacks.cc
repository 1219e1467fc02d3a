// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/stacks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <vector>

#include "ddlctl/status_text.h"
#include "support/file.h"
#include "support/number.h"
#include "trainer/control/control_socket.h"
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

namespace {

constexpr std::string_view kOurs = "trainer::";
constexpr std::string_view kWaits = "waiting for other ranks";
constexpr std::string_view kFrame = "  #";
constexpr std::string_view kIn = " in ";

// The lines of the first thread, behind the one that names it.
std::vector<std::string> MainThread(const std::string& stacks) {
  std::vector<std::string> lines;
  std::size_t begin = stacks.find('\n');
  while (begin != std::string::npos && begin + 1 < stacks.size() && stacks[begin + 1] != '\n') {
    const std::size_t end = stacks.find('\n', ++begin);
    lines.push_back(Harmless(stacks.substr(begin, end - begin)));
    begin = end;
  }
  return lines;
}

// "  #3 trainer::F(int) in /usr/bin/p(+0x1)".
struct Frame {
  std::string number;    // "3"
  std::string function;  // "trainer::F", or "?"
  std::string place;     // "p(+0x1)"
};

// nullopt for any other line.
std::optional<Frame> FrameIn(const std::string& line) {
  constexpr std::string_view kNameless = "(anonymous namespace)::";
  if (!line.starts_with(kFrame)) return std::nullopt;
  const std::size_t begin = line.find(' ', kFrame.size());
  const std::size_t end = line.rfind(kIn);
  if (begin == std::string::npos || end == std::string::npos || end <= begin) return std::nullopt;
  Frame frame = {.number = line.substr(kFrame.size(), begin - kFrame.size()),
                 .function = line.substr(begin + 1, end - begin - 1),
                 .place = line.substr(end + kIn.size())};
  std::string& name = frame.function;
  for (std::size_t at; (at = name.find(kNameless)) != std::string::npos;) {
    name.erase(at, kNameless.size());
  }
  name.erase(std::min(name.find('('), name.size()));
  if (name.empty()) name = "?";
  const std::size_t offset = frame.place.rfind("(+");
  frame.place.erase(0, frame.place.find_last_of('/', offset) + 1);
  return frame;
}

// Without arguments and directories, which the files have.
std::string ShortLine(const std::string& line) {
  const auto frame = FrameIn(line);
  return frame ? fmt::format("  #{} {} in {}", frame->number, frame->function, frame->place) : line;
}

// The function, or where that is not known the place, but for one in no file, as of code that was
// made at run time: that differs from process to process.
std::string CallIn(const std::string& line) {
  const auto frame = FrameIn(line);
  if (!frame) return line;
  return frame->function == "?" && !frame->place.starts_with('(') ? frame->place : frame->function;
}

// What ranks of a group have in common: the calls from main on to the innermost of ddltraind.
std::vector<std::string> CallsOf(const std::vector<std::string>& lines) {
  std::vector<std::string> calls;
  for (const std::string& line : lines) calls.push_back(CallIn(line));
  const auto ours = std::ranges::find_if(
      calls, [](const std::string& call) { return call.find(kOurs) != std::string::npos; });
  if (ours != calls.end()) calls.erase(calls.begin(), ours);
  return calls;
}

// "0, 2-5".
std::string Ranges(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    parts.push_back(last == i ? std::to_string(ranks[i])
                              : fmt::format("{}-{}", ranks[i], ranks[last]));
    i = last + 1;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// "rank 3 on n2", "ranks 0-1 on n1, 2-3 on n2"; long lists are cut.
std::string NamesOf(const std::vector<int>& ranks, const std::vector<RankAnswer>& all) {
  constexpr std::size_t kNamed = 8;
  std::vector<std::string> hosts;  // in the order of the ranks
  std::map<std::string, std::vector<int>> by_host;
  for (const int rank : ranks) {
    const std::string& host = all[static_cast<std::size_t>(rank)].host;
    if (!by_host.contains(host)) hosts.push_back(host);
    by_host[host].push_back(rank);
  }
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(hosts.size(), kNamed); ++i) {
    parts.push_back(Ranges(by_host[hosts[i]]) + " on " + Harmless(hosts[i]));
  }
  std::string names =
      fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(parts, ", "));
  if (hosts.size() > kNamed) {
    names += fmt::format(" and those of {} more",
                         support::Counted(static_cast<long long>(hosts.size() - kNamed), "host"));
  }
  return names;
}

// "in training, step 17, waiting for other ranks" of "rank 0 on n1, process 4711: in ...".
std::string DoingOf(const std::string& headline) {
  const std::size_t colon = headline.find(": ");
  return colon == std::string::npos ? "" : Harmless(headline.substr(colon + 2));
}

std::string SilentText(const std::vector<RankAnswer>& ranks, double seconds) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].stacks) continue;
    const std::string why =
        ranks[i].state.empty()
            ? std::string("stopped, or its node or file system is out of reach")
            : fmt::format("process {} {}{}", ranks[i].pid, ranks[i].state == "stopped" ? "is " : "",
                          ranks[i].state);
    text += fmt::format("{} has not answered within {:.0f} s: {}\n",
                        NamesOf({static_cast<int>(i)}, ranks), seconds, why);
  }
  return text;
}

struct Group {
  std::vector<int> ranks;
  std::vector<std::string> lines;  // of the lowest of them
  std::string doing;
};

// Few before many; of equal groups those that the others wait for before those that wait.
std::vector<Group> GroupsOf(const std::vector<RankAnswer>& ranks) {
  std::map<std::vector<std::string>, Group> by_calls;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!ranks[i].stacks) continue;
    std::vector<std::string> lines = MainThread(ranks[i].stacks->stacks);
    Group& group = by_calls[CallsOf(lines)];
    if (group.ranks.empty()) {
      group.lines = std::move(lines);
      group.doing = DoingOf(ranks[i].stacks->headline);
    }
    group.ranks.push_back(static_cast<int>(i));
  }
  std::vector<Group> groups;
  for (auto& [calls, group] : by_calls) groups.push_back(std::move(group));
  std::ranges::sort(groups, {}, [](const Group& group) {
    return std::tuple(group.ranks.size(), group.doing.find(kWaits) != std::string::npos,
                      group.ranks.front());
  });
  return groups;
}

}  // namespace

std::string GroupedStackTraces(const std::vector<RankAnswer>& ranks, double seconds) {
  std::string text = SilentText(ranks, seconds);
  for (const Group& group : GroupsOf(ranks)) {
    if (!text.empty()) text += '\n';
    text += NamesOf(group.ranks, ranks);
    if (ranks.size() > 1) text += fmt::format(" ({} of {})", group.ranks.size(), ranks.size());
    if (!group.doing.empty()) text += ": " + group.doing;
    text += '\n';
    for (const std::string& line : group.lines) text += ShortLine(line) + "\n";
  }
  return text;
}

std::string AllStackTraces(const std::vector<RankAnswer>& ranks, double seconds) {
  std::string text = SilentText(ranks, seconds);
  for (const RankAnswer& rank : ranks) {
    if (!rank.stacks) continue;
    if (!text.empty()) text += '\n';
    text += Harmless(rank.stacks->headline) + "\n";
    std::string_view rest = rank.stacks->stacks;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      text += Harmless(std::string(rest.substr(0, end))) + "\n";
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return text;
}

}  // namespace ddlctl
