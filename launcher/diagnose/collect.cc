// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/collect.h"

#include <sys/wait.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "launcher/base/error.h"
#include "launcher/diagnose/process.h"
#include "launcher/protocol/job_status.h"
#include "launcher/system/child_process.h"
#include "launcher/system/files.h"
#include "support/file.h"
#include "support/json.h"
#include "support/memory_kills.h"
#include "support/number.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;
using CollectClock = std::chrono::steady_clock;

// Calls visit(0) to visit(count - 1) in threads, until all have returned or the time is over.  True
// in the first case; else some threads go on: what `visit` uses must be its own.
bool VisitInThreads(std::size_t count, std::size_t max_threads, CollectClock::time_point deadline,
                    std::function<void(std::size_t)> visit) {
  struct Work {
    std::mutex mutex;
    std::condition_variable ends;
    std::size_t next = 0;
    std::size_t done = 0;
  };
  const auto work = std::make_shared<Work>();
  const auto run = [work, count, visit = std::move(visit)] {
    for (std::unique_lock lock(work->mutex); work->next < count;) {
      const std::size_t index = work->next++;
      lock.unlock();
      visit(index);
      lock.lock();
      if (++work->done == count) work->ends.notify_all();
    }
  };
  try {
    for (std::size_t i = 0; i < std::min(count, max_threads); ++i) std::thread(run).detach();
  } catch (const std::system_error&) {
    // Those that there are go on.
  }
  std::unique_lock lock(work->mutex);
  return work->ends.wait_until(lock, deadline, [&] { return work->done == count; });
}

// Results that threads which were left alone may still add to.
template <typename Key, typename Value>
class SharedResults {
 public:
  void Set(const Key& key, Value value) {
    const std::lock_guard lock(state_->mutex);
    state_->values[key] = std::move(value);
  }
  std::map<Key, Value> Take() const {
    const std::lock_guard lock(state_->mutex);
    return state_->values;
  }

 private:
  struct State {
    std::mutex mutex;
    std::map<Key, Value> values;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

struct FoundProcess {
  ProcessStat stat;
  Environment environment;
};
using FoundProcesses = std::map<pid_t, FoundProcess>;

std::optional<int> NumberIn(const Environment& environment, const char* name) {
  return support::WholeNumber<int>(ValueOr(environment, name, ""));
}

// It has letters by chance (run_directory.h), and may be reached by several paths.
std::string NameOfDirectory(const std::string& directory) {
  return fs::path(directory).filename().string();
}

// Where its rank meets the others.
std::string RunOf(const Environment& environment) {
  return ValueOr(environment, "DDLRUN_MASTER_ADDR", "") + ":" +
         ValueOr(environment, "DDLRUN_MASTER_PORT", "");
}

// Whether the process has been started by ddlrun in the job.  Ranks on other nodes than that of
// ddlrun know no run directory.
bool IsOfJob(const Environment& environment, const CollectOptions& options) {
  if (!environment.contains("DDLRUN_LAUNCHER")) return false;
  if (!options.directory.empty()) {
    return NameOfDirectory(ValueOr(environment, "DDLRUN_RUN_DIR", "")) ==
           NameOfDirectory(options.directory);
  }
  return ValueOr(environment, "SLURM_JOB_ID", "") == options.job &&
         (options.run.empty() || RunOf(environment) == options.run);
}

// Which rank of the job a process is of; nullopt: of none.
using RankName = std::pair<int, int>;  // its number, and how many there are
std::optional<RankName> RankOf(const Environment& environment, const CollectOptions& options) {
  const auto rank = NumberIn(environment, "RANK");
  const auto world = NumberIn(environment, "WORLD_SIZE");
  if (!rank || !world || *rank < 0 || *rank >= *world || *world > kMaxWorld ||
      !IsOfJob(environment, options))
    return std::nullopt;
  return RankName(*rank, *world);
}

FoundProcesses FindProcesses(CollectClock::time_point deadline, NodeFacts* facts) {
  const std::vector<pid_t> pids = OwnProcesses();
  SharedResults<pid_t, FoundProcess> results;
  constexpr std::size_t kThreads = 8;
  const bool is_all =
      VisitInThreads(pids.size(), kThreads, deadline, [pids, results](auto i) mutable {
        auto stat = ReadProcessStat(pids[i]);
        if (stat) results.Set(pids[i], {*stat, EnvironmentOf(pids[i])});
      });
  if (!is_all) facts->notes.emplace_back("a process of this user cannot be looked at: /proc hangs");
  return results.Take();
}

// The first process of each rank, by rank.  Programs that start ranks of their own in a rank, such
// as torchrun, give them more of a world: those count.
std::map<int, pid_t> FirstProcesses(const FoundProcesses& processes, const CollectOptions& options,
                                    int* world, NodeFacts* facts) {
  std::map<pid_t, RankName> members;
  std::set<std::string> runs;
  for (const auto& [pid, process] : processes) {
    const auto name = RankOf(process.environment, options);
    if (!name) continue;
    members[pid] = *name;
    *world = std::max(*world, name->second);
    runs.insert(RunOf(process.environment));
    const std::string directory = ValueOr(process.environment, "DDLRUN_RUN_DIR", "");
    if (!directory.empty()) facts->directory = directory;
  }
  if (!runs.empty()) facts->run = *runs.begin();
  if (runs.size() > 1) {
    facts->notes.emplace_back(kSeveralRuns);
    return {};
  }
  std::map<int, pid_t> first;
  for (const auto& [pid, name] : members) {
    const FoundProcess& process = processes.at(pid);
    const auto parent = members.find(process.stat.parent);
    const bool has_parent = parent != members.end() && parent->second == name;
    if (name.second != *world || has_parent) continue;
    const auto [known, is_new] = first.emplace(name.first, pid);
    // A helper that it has left behind is younger.
    if (!is_new && process.stat.start < processes.at(known->second).stat.start) known->second = pid;
  }
  return first;
}

// With all below, parents before their children.
std::vector<pid_t> TreeOf(pid_t root, const FoundProcesses& processes) {
  std::vector<pid_t> tree = {root};
  for (std::size_t i = 0; i < tree.size() && tree.size() < kMaxProcessesOfRank; ++i) {
    for (const auto& [pid, process] : processes) {
      const bool is_child = process.stat.parent == tree[i] && tree.size() < kMaxProcessesOfRank;
      if (is_child && std::ranges::find(tree, pid) == tree.end()) tree.push_back(pid);
    }
  }
  return tree;
}

std::vector<ProcessFacts> LookTwice(const std::vector<pid_t>& tree, CollectClock::duration pause) {
  std::map<pid_t, ProcessLook> before;
  const auto start = CollectClock::now();
  for (const pid_t pid : tree) {
    const auto look = LookAt(pid);
    if (look) before[pid] = *look;
  }
  std::this_thread::sleep_until(start + pause);
  const double seconds = std::chrono::duration<double>(CollectClock::now() - start).count();
  std::vector<ProcessFacts> facts;
  for (const pid_t pid : tree) {
    const auto look = LookAt(pid);
    if (look && before.contains(pid)) facts.push_back(FactsOf(pid, before[pid], *look, seconds));
  }
  // Of a rank that has just ended its children are no rank.
  if (!facts.empty() && facts.front().pid != tree.front()) facts.clear();
  return facts;
}

void LookAtRanks(const FoundProcesses& processes, const std::map<int, pid_t>& first, int world,
                 CollectClock::duration pause, CollectClock::time_point deadline,
                 NodeFacts* facts) {
  std::vector<std::vector<pid_t>> trees;
  std::vector<RankFacts> ranks;
  for (const auto& [rank, pid] : first) {
    if (ranks.size() == kMaxRanksOfNode) break;
    trees.push_back(TreeOf(pid, processes));
    RankFacts found;
    found.rank = rank;
    found.world = world;
    found.host = ValueOr(processes.at(pid).environment, "DDLRUN_HOST", facts->host);
    found.memory_kills = support::ReadMemoryKills("", std::to_string(pid).c_str()).count;
    ranks.push_back(std::move(found));
  }
  SharedResults<std::size_t, std::vector<ProcessFacts>> results;
  constexpr std::size_t kThreads = 64;
  const bool is_all = VisitInThreads(trees.size(), kThreads, deadline, [=](auto i) mutable {
    results.Set(i, LookTwice(trees[i], pause));
  });
  if (!is_all) facts->notes.emplace_back("a rank cannot be looked at: /proc hangs");
  const auto looks = results.Take();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto found = looks.find(i);
    ProcessFacts unseen;
    unseen.pid = trees[i].front();
    unseen.name = processes.at(unseen.pid).stat.name;
    ranks[i].processes = found == looks.end() ? std::vector{unseen} : found->second;
    if (!ranks[i].processes.empty()) facts->ranks.push_back(std::move(ranks[i]));
  }
}

// Starts py-spy for each Python that is the focus of a rank, some at a time.
void AddStacks(const FoundProcesses& processes, const Environment& environment,
               CollectClock::time_point deadline, NodeFacts* facts) {
  using namespace std::chrono_literals;
  std::vector<std::pair<pid_t, std::string>> wanted;  // with the PATH to search
  for (const RankFacts& rank : facts->ranks) {
    const ProcessFacts& focus = FocusOf(rank);
    const auto process = processes.find(focus.pid);
    // py-spy waits for a process whose memory it cannot have.
    if (process == processes.end() || focus.state == 'Z' || !IsPython(focus.pid)) continue;
    wanted.emplace_back(focus.pid, ValueOr(environment, "PATH", "") + ":" +
                                       ValueOr(process->second.environment, "PATH", ""));
  }
  SharedResults<pid_t, std::string> programs;
  const auto found_by = std::min(deadline, CollectClock::now() + 2s);
  VisitInThreads(wanted.size(), 8, found_by, [wanted, programs](auto i) mutable {
    programs.Set(wanted[i].first, FindProgram("py-spy", {{"PATH", wanted[i].second}}));
  });
  std::vector<std::pair<pid_t, std::string>> calls;
  for (const auto& [pid, program] : programs.Take()) {
    if (!program.empty()) calls.emplace_back(pid, program);
  }
  if (!wanted.empty() && calls.empty()) {
    facts->notes.emplace_back(
        "no py-spy is in PATH: Python functions are not known (pip install py-spy)");
  }
  std::map<pid_t, std::vector<std::string>> stacks;
  constexpr std::size_t kAtOnce = 8;
  for (std::size_t i = 0; i < calls.size() && CollectClock::now() < deadline; i += kAtOnce) {
    std::map<pid_t, std::unique_ptr<CommandOutput>> commands;
    const auto until = std::min(deadline, CollectClock::now() + 3s);
    for (std::size_t j = i; j < std::min(i + kAtOnce, calls.size()); ++j) {
      const auto& [pid, program] = calls[j];
      try {
        commands[pid] = std::make_unique<CommandOutput>(
            std::vector<std::string>{program, "dump", "--json", "--nonblocking", "--pid",
                                     std::to_string(pid)},
            environment);
      } catch (const LaunchError& error) {
        facts->notes.emplace_back(error.what());
      }
    }
    for (const auto& [pid, command] : commands) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - CollectClock::now());
      command->Wait(std::max<std::chrono::milliseconds>(left, 50ms));
      stacks[pid] = ParsePySpy(command->text(), pid);
      if (stacks[pid].empty() && facts->notes.size() < 4) {
        facts->notes.push_back("py-spy of process " + std::to_string(pid) + ": " +
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

// That of the run directory, if this node has it.
std::string StatusIn(const std::string& directory, CollectClock::time_point deadline) {
  SharedResults<int, std::string> results;
  VisitInThreads(1, 1, deadline, [=](auto /*only*/) mutable {
    const fs::path file = fs::path(directory) / kStatusFileName;
    results.Set(0, support::ReadWholeFile(file, kMaxStatusBytes).content);
  });
  return results.Take()[0];
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
      // Whose directories nobody needs: of a library the package is enough.
      std::string file = text_of(frame, "filename");
      for (std::size_t slash = file.size(), parts = 0; slash != std::string::npos && slash > 0;) {
        slash = file.rfind('/', slash - 1);
        if (++parts == 3 && slash != std::string::npos) file.erase(0, slash + 1);
        if (parts == 3) break;
      }
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

NodeFacts CollectFacts(const CollectOptions& options) {
  const auto start = CollectClock::now();
  const auto deadline = start + options.limit;
  NodeFacts facts;
  facts.host = options.host;
  const FoundProcesses processes = FindProcesses(start + options.limit / 3, &facts);
  int world = 0;
  facts.directory = options.directory;
  const std::map<int, pid_t> first = FirstProcesses(processes, options, &world, &facts);
  LookAtRanks(processes, first, world, options.between_looks, start + options.limit * 2 / 3,
              &facts);
  AddStacks(processes, options.environment, deadline, &facts);
  if (!facts.directory.empty()) facts.status = StatusIn(facts.directory, deadline);
  return facts;
}

}  // namespace launcher
