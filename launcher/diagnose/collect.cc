// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/collect.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <tuple>
#include <utility>

#include "launcher/base/error.h"
#include "launcher/diagnose/flight_recorder.h"
#include "launcher/diagnose/gpu_errors.h"
#include "launcher/diagnose/nccl_ras.h"
#include "launcher/diagnose/process.h"
#include "launcher/diagnose/stacks.h"
#include "launcher/diagnose/visit_in_threads.h"
#include "launcher/protocol/job_status.h"
#include "launcher/system/child_process.h"
#include "launcher/system/files.h"
#include "support/file.h"
#include "support/memory_kills.h"
#include "support/number.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;
using CollectClock = std::chrono::steady_clock;

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

// Asks PyTorch in the ranks, which looks once a second whether it is to answer.
void AddRecords(const FoundProcesses& processes, const std::map<int, pid_t>& first,
                CollectClock::time_point deadline, NodeFacts* facts) {
  std::vector<std::pair<pid_t, Environment>> recorders;
  for (const RankFacts& rank : facts->ranks) {
    const pid_t pid = first.at(rank.rank);
    recorders.emplace_back(pid, processes.at(pid).environment);
  }
  SharedResults<std::size_t, std::vector<RecordedGroup>> answers;
  VisitInThreads(recorders.size(), 64, deadline, [=](auto i) mutable {
    answers.Set(i, AskFlightRecorder(recorders[i].first, recorders[i].second, deadline));
  });
  for (auto& [index, groups] : answers.Take()) facts->ranks[index].recorded = std::move(groups);
}

// Asks NCCL in the ranks.  Where none of them uses it nobody listens, which is known at once.
void AddCommunicators(const FoundProcesses& processes, const std::map<int, pid_t>& ranks,
                      CollectClock::time_point deadline, NodeFacts* facts) {
  std::set<std::string> names;
  for (const auto& [rank, pid] : ranks)
    names.insert(ValueOr(processes.at(pid).environment, "NCCL_RAS_ADDR", kRasAddress));
  const std::vector<std::string> addresses(names.begin(), names.end());
  SharedResults<std::size_t, std::string> answers;
  VisitInThreads(addresses.size(), 8, deadline,
                 [=](auto i) mutable { answers.Set(i, AskRas(addresses[i], deadline)); });
  for (const auto& [index, answer] : answers.Take()) {
    if (answer.empty()) continue;
    std::string problem;
    auto communicators = ParseRas(answer, AddressesOfThisNode(), &problem);
    if (!problem.empty()) facts->notes.push_back(problem);
    for (RankFacts& rank : facts->ranks) {
      for (const ProcessFacts& process : rank.processes) {
        for (CommunicatorFacts& one : communicators[process.pid]) {
          if (rank.communicators.size() < kMaxCommunicators)
            rank.communicators.push_back(std::move(one));
        }
      }
    }
  }
}

// What Yama (kernel.yama.ptrace_scope) keeps from a user of his own processes.
std::string PtraceNote() {
  const std::string scope =
      support::ReadWholeFile("/proc/sys/kernel/yama/ptrace_scope", 16, support::FileKind::kAny)
          .content;
  if (scope.empty() || scope[0] == '0' || geteuid() == 0) return "";
  return "system calls and functions are not known: kernel.yama.ptrace_scope is " +
         scope.substr(0, scope.find('\n'));
}

// What nvidia-smi says of the GPUs, where there is one.
void AddGpus(const Environment& environment, CollectClock::time_point deadline, NodeFacts* facts) {
  const std::string program = FindProgram("nvidia-smi", environment);
  if (program.empty() || facts->ranks.empty()) return;
  try {
    CommandOutput command(
        {program, std::string("--query-gpu=") + kGpuColumns, "--format=csv,noheader"}, environment);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - CollectClock::now());
    if (!command.Wait(left)) {
      facts->notes.push_back("nvidia-smi: " + LastLineOf(command.text()).substr(0, 200));
      return;
    }
    std::istringstream lines(command.text());
    for (std::string line; std::getline(lines, line) && facts->gpus.size() < kMaxGpus;)
      facts->gpus.push_back(line.substr(0, 300));
  } catch (const LaunchError& error) {
    facts->notes.emplace_back(error.what());
  }
}

// What GPUs have reported since a rank was started, of its processes.
void AddGpuErrors(const FoundProcesses& processes, const std::string& kernel_log,
                  NodeFacts* facts) {
  const std::vector<GpuError> errors = ParseGpuErrors(ReadKernelLog(kernel_log));
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  std::set<std::string> notes;
  for (const GpuError& error : errors) {
    const std::string text = "GPU " + error.gpu + ": Xid " + std::to_string(error.xid);
    for (RankFacts& rank : facts->ranks) {
      const auto first = processes.find(rank.processes.front().pid);
      const bool is_old =
          first == processes.end() ||
          error.seconds * ticks_per_second < static_cast<double>(first->second.stat.start);
      if (is_old) continue;
      const bool is_of_rank =
          error.pid != 0 &&
          std::ranges::find(rank.processes, error.pid, &ProcessFacts::pid) != rank.processes.end();
      if (is_of_rank && rank.gpu_error.empty()) rank.gpu_error = text;
      if (!is_of_rank) notes.insert("the kernel log has of a process that is not known " + text);
    }
  }
  for (const std::string& note : notes) {
    if (facts->notes.size() < 16) facts->notes.push_back(note);
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

NodeFacts CollectFacts(const CollectOptions& options) {
  const auto start = CollectClock::now();
  const auto deadline = start + options.limit;
  NodeFacts facts;
  facts.host = options.host;
  if (const std::string note = PtraceNote(); !note.empty()) facts.notes.push_back(note);
  const FoundProcesses processes = FindProcesses(start + options.limit / 3, &facts);
  int world = 0;
  facts.directory = options.directory;
  const std::map<int, pid_t> first = FirstProcesses(processes, options, &world, &facts);
  LookAtRanks(processes, first, world, options.between_looks, start + options.limit / 2, &facts);
  if (options.with_stacks) {
    AddGpuErrors(processes, options.kernel_log, &facts);
    AddGpus(options.environment, CollectClock::now() + options.limit / 6, &facts);
    AddRecords(processes, first, CollectClock::now() + options.limit / 4, &facts);
    // A rank that does not answer costs NCCL seconds.  Stacks come last, since some tools hold a
    // rank.
    AddCommunicators(processes, first, start + options.limit * 3 / 4, &facts);
    const auto variables_of = [&processes](pid_t pid) {
      const auto process = processes.find(pid);
      return process == processes.end() ? nullptr : &process->second.environment;
    };
    AddStacks(options.environment, variables_of, deadline, &facts);
  }
  if (!facts.directory.empty()) facts.status = StatusIn(facts.directory, deadline);
  return facts;
}

}  // namespace launcher
