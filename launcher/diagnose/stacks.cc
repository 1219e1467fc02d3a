// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/stacks.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "launcher/base/error.h"
#include "launcher/diagnose/finding.h"
#include "launcher/diagnose/process.h"
#include "launcher/diagnose/visit_in_threads.h"
#include "launcher/system/child_process.h"
#include "launcher/system/files.h"
#include "support/json.h"

namespace launcher {
namespace {

using namespace std::chrono_literals;
using StackClock = std::chrono::steady_clock;

// A tool that shows the functions of a process.
struct StackTool {
  const char* name;
  bool holds_process;  // while it looks at it, which it is asked for no process that is stopped
  std::vector<std::string> (*arguments)(const std::string& pid);
  std::vector<std::string> (*parse)(std::string_view text, int pid);
};
using StackTools = std::vector<StackTool>;  // the first that is there is taken

std::vector<std::string> ParseNative(std::string_view text, int /*pid*/) {
  return ParseNativeStack(text);
}

const StackTools& ToolsFor(bool is_python) {
  using Words = std::vector<std::string>;
  static const StackTools python = {
      {"py-spy", false,
       [](const std::string& pid) {
         return Words{"dump", "--json", "--nonblocking", "--pid", pid};
       },
       ParsePySpy}};
  static const StackTools native = {{"eu-stack", true,
                                     [](const std::string& pid) {
                                       return Words{"-1", "-m", "-p", pid};
                                     },
                                     ParseNative},
                                    {"gdb", true,
                                     [](const std::string& pid) {
                                       return Words{"-batch", "-nx", "-ex", "set width 0",
                                                    "-ex",    "bt",  "-p",  pid};
                                     },
                                     ParseNative}};
  return is_python ? python : native;
}

struct StackCall {
  pid_t pid;
  StackTool tool;
  std::string program;  // the path of the tool
};

// The calls for all ranks; what tools would be needed that are not there is noted.
std::vector<StackCall> FindTools(const Environment& environment,
                                 const std::function<const Environment*(pid_t)>& variables_of,
                                 StackClock::time_point deadline, NodeFacts* facts) {
  struct Wanted {
    pid_t pid;
    bool is_python;
    std::string path;
  };
  std::vector<Wanted> wanted;
  for (const RankFacts& rank : facts->ranks) {
    const ProcessFacts& focus = FocusOf(rank);
    const Environment* const variables = variables_of(focus.pid);
    // A tool waits for a process whose memory it cannot have.
    if (variables == nullptr || focus.state == 'Z' || focus.state == 'D') continue;
    // Those that hold the process for a moment are for what cannot be known without them.
    const bool is_python = IsPython(focus.pid);
    if (!is_python && !NeedsFunctions(focus)) continue;
    wanted.push_back({focus.pid, is_python,
                      ValueOr(environment, "PATH", "") + ":" + ValueOr(*variables, "PATH", "") +
                          ":" + ProgramDirectory()});  // where pip puts py-spy with ddlrun
  }
  SharedResults<std::size_t, StackCall> found;
  VisitInThreads(wanted.size(), 8, deadline, [wanted, found](auto i) mutable {
    for (const StackTool& tool : ToolsFor(wanted[i].is_python)) {
      const std::string program = FindProgram(tool.name, {{"PATH", wanted[i].path}});
      if (!program.empty()) return found.Set(i, {wanted[i].pid, tool, program});
    }
  });
  const std::map<std::size_t, StackCall> calls = found.Take();
  for (const bool is_python : {true, false}) {
    const auto is_missing = [&](std::size_t i) {
      return wanted[i].is_python == is_python && !calls.contains(i);
    };
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!is_missing(i)) continue;
      facts->notes.emplace_back(
          is_python ? "no py-spy is in PATH: Python functions are not known (pip install py-spy)"
                    : "no eu-stack or gdb is in PATH: functions are not known (package elfutils)");
      break;
    }
  }
  std::vector<StackCall> result;
  for (const auto& [index, call] : calls) result.push_back(call);
  return result;
}

// Frames of no use at the ends of a stack.
bool IsOfCLibrary(std::string_view frame) {
  constexpr std::array kFiles = {"(libc.so",  "(libc-", "(libpthread",
                                 "(ld-linux", "(ld64",  "([vdso"};
  constexpr std::array kNames = {"_start", "__libc_start", "start_thread", "clone"};
  return std::ranges::any_of(
             kFiles,
             [&](const char* file) { return frame.find(file) != std::string_view::npos; }) ||
         std::ranges::any_of(kNames, [&](const char* name) { return frame.starts_with(name); });
}

// Of a file of Python, or of a package, the path from "lib/python3.11" or "site-packages" on, which
// says so; of another one the last two directories.
std::string WithoutDirectories(const std::string& file) {
  for (const char* const name : {"site-packages/", "dist-packages/", "lib/python3"}) {
    const std::size_t found = file.rfind(name);
    if (found != std::string::npos) return file.substr(found);
  }
  std::size_t slash = file.size();
  for (int parts = 0; parts < 3 && slash != std::string::npos && slash > 0; ++parts)
    slash = file.rfind('/', slash - 1);
  return slash == std::string::npos || slash == 0 ? file : file.substr(slash + 1);
}

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// "MPI_Recv (libmpi.so.40)" of "#2  0x00007f5c MPI_Recv - /usr/lib/libmpi.so.40" (eu-stack) and of
// "#2  0x00007f5c in MPI_Recv (count=1) from /usr/lib/libmpi.so.40" (gdb); "" of any other line.
std::string NativeFrame(std::string_view line) {
  if (line.size() < 2 || line[0] != '#' || std::isdigit(static_cast<unsigned char>(line[1])) == 0)
    return "";
  const auto skip_word = [&line] {
    line.remove_prefix(std::min(line.find(' '), line.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  };
  skip_word();
  if (line.starts_with("0x")) skip_word();
  if (line.starts_with("in ")) skip_word();
  std::string_view place;
  for (const char* const before : {" from ", " at ", " - "}) {
    const std::size_t found = line.rfind(before);
    if (found == std::string_view::npos) continue;
    place = BaseName(line.substr(found + std::string_view(before).size()));
    line = line.substr(0, found);
    break;
  }
  // The arguments are those of gdb; a name with its types has no blank before them.
  line = line.substr(0, line.find(" ("));
  line = line.substr(0, line.find('@'));
  while (line.ends_with(' ')) line.remove_suffix(1);
  if (line.empty() || line == "??" || line.starts_with("- ")) return "";
  return std::string(line.substr(0, 500)) +
         (place.empty() ? "" : " (" + std::string(place.substr(0, 400)) + ")");
}

}  // namespace

std::vector<std::string> ParsePySpy(std::string_view text, int pid) {
  constexpr support::JsonLimits kLimits = {
      .bytes = std::size_t{16} << 20, .depth = 16, .values = 1'000'000};
  // What it warns of comes before the answer.
  const std::size_t begin = text.starts_with('[') ? 0 : text.find("\n[");
  if (begin == std::string_view::npos) return {};
  const nlohmann::json threads = support::ParseJson(text.substr(begin), kLimits);
  if (!threads.is_array()) return {};
  const auto text_of = [](const nlohmann::json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
  };
  for (const nlohmann::json& thread : threads) {
    if (!thread.is_object() || !thread.contains("frames") || !thread["frames"].is_array()) continue;
    const auto id = thread.contains("os_thread_id")
                        ? support::IntegerOf<int>(thread["os_thread_id"], 1, INT32_MAX)
                        : std::nullopt;
    if (id ? *id != pid : text_of(thread, "thread_name") != "MainThread") continue;
    std::vector<std::string> stack;
    for (const nlohmann::json& frame : thread["frames"]) {
      if (!frame.is_object() || stack.size() == kMaxFrames) break;
      const std::string file = WithoutDirectories(text_of(frame, "filename"));
      const auto line = frame.contains("line")
                            ? support::IntegerOf<int>(frame["line"], 0, INT32_MAX)
                            : std::nullopt;
      const std::string place = file + ":" + std::to_string(line.value_or(0));
      stack.push_back((text_of(frame, "name") + " (" + place + ")").substr(0, 1000));
    }
    return stack;
  }
  return {};
}

std::vector<std::string> ParseNativeStack(std::string_view text) {
  std::vector<std::string> stack;
  bool has_begun = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("#0 ") && std::exchange(has_begun, true)) break;  // another thread
    std::string frame = NativeFrame(line);
    if (frame.empty() || (stack.empty() && IsOfCLibrary(frame))) continue;
    stack.push_back(std::move(frame));
  }
  while (!stack.empty() && IsOfCLibrary(stack.back())) stack.pop_back();
  if (stack.size() > kMaxFrames) stack.resize(kMaxFrames);
  return stack;
}

namespace {

// A tool that was ended as it attached may leave a process stopped that ran.
void ResumeIfStopped(pid_t pid) {
  const auto stat = ReadProcessStat(pid);
  if (stat && stat->state == 'T') kill(pid, SIGCONT);
}

// Has the tools look, some at a time, and puts the stacks where they belong.
void CallTools(const std::vector<StackCall>& calls, const Environment& environment,
               StackClock::time_point deadline, NodeFacts* facts) {
  std::map<pid_t, std::vector<std::string>> stacks;
  constexpr std::size_t kAtOnce = 8;
  for (std::size_t i = 0; i < calls.size() && StackClock::now() < deadline; i += kAtOnce) {
    std::vector<std::pair<StackCall, std::unique_ptr<CommandOutput>>> commands;
    const auto until = std::min(deadline, StackClock::now() + 3s);
    for (std::size_t j = i; j < std::min(i + kAtOnce, calls.size()); ++j) {
      std::vector<std::string> command = calls[j].tool.arguments(std::to_string(calls[j].pid));
      command.insert(command.begin(), calls[j].program);
      try {
        commands.emplace_back(calls[j], std::make_unique<CommandOutput>(command, environment));
      } catch (const LaunchError& error) {
        facts->notes.emplace_back(error.what());
      }
    }
    for (const auto& [call, command] : commands) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - StackClock::now());
      const bool is_done = command->Wait(std::max<std::chrono::milliseconds>(left, 50ms));
      if (!is_done && call.tool.holds_process) ResumeIfStopped(call.pid);
      stacks[call.pid] = call.tool.parse(command->text(), call.pid);
      if (stacks[call.pid].empty() && facts->notes.size() < 4) {
        facts->notes.push_back(std::string(call.tool.name) + " of process " +
                               std::to_string(call.pid) + ": " +
                               LastLineOf(command->text()).substr(0, 200));
      }
    }
  }
  for (RankFacts& rank : facts->ranks) {
    for (ProcessFacts& process : rank.processes) {
      const auto stack = stacks.find(process.pid);
      if (stack != stacks.end()) process.stack = stack->second;
    }
  }
}

// For the workers of ranks that wait for one.
std::vector<StackCall> CallsForWorkers(const std::vector<StackCall>& calls,
                                       const NodeFacts& facts) {
  constexpr int kWorkersOfRank = 4;
  std::vector<StackCall> result;
  for (const RankFacts& rank : facts.ranks) {
    const ProcessFacts& focus = FocusOf(rank);
    const auto call = std::ranges::find(calls, focus.pid, &StackCall::pid);
    if (call == calls.end() || !WaitsForWorker(focus)) continue;
    int count = 0;
    for (const ProcessFacts& worker : rank.processes) {
      const bool is_seen = worker.parent == focus.pid && worker.state != 'Z' &&
                           worker.state != 'D' && IsPython(worker.pid);
      if (is_seen && count++ < kWorkersOfRank)
        result.push_back({worker.pid, call->tool, call->program});
    }
  }
  return result;
}

}  // namespace

void AddStacks(const Environment& environment,
               const std::function<const Environment*(pid_t)>& variables_of,
               StackClock::time_point deadline, NodeFacts* facts) {
  const std::vector<StackCall> calls =
      FindTools(environment, variables_of, std::min(deadline, StackClock::now() + 2s), facts);
  CallTools(calls, environment, deadline, facts);
  CallTools(CallsForWorkers(calls, *facts), environment, deadline, facts);
}

}  // namespace launcher
