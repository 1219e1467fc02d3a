// SPDX-License-Identifier: Apache-2.0
//
// What a job of thousands of nodes costs ddlrun on the node where it runs: time and memory from the
// environment to the plan and to srun, and the time that the ends of all ranks take.  Slurm's
// variables are made up, and a script stands for srun.  doc/reference/metrics.md defines every
// column.
//
//   plan_cost [ROUNDS]        (9; build/release/bench/plan_cost)

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/base/scratch_directory.h"
#include "support/number.h"

namespace {

using bench::ScratchDirectory;

namespace fs = std::filesystem;

constexpr int kGpus = 8;
constexpr char kTopology[] = DDLRUN_SOURCE_DIR "/tests/fixtures/hwloc/dgx1v.xml";

struct Run {
  double milliseconds = 0;
  double cpu_milliseconds = 0;  // with what it started
  double mebibytes = 0;         // most that was resident
  int exit_code = 0;
};

void WriteProgram(const ScratchDirectory& directory, const std::string& name,
                  const std::string& text) {
  std::ofstream(directory.path() / name) << text;
  fs::permissions(directory.path() / name, fs::perms::owner_all);
}

// Of a batch script on the first of `nodes` nodes.
std::vector<std::string> EnvironmentOf(int nodes, const ScratchDirectory& directory) {
  const std::string count = std::to_string(nodes);
  const std::string gpus = std::to_string(kGpus);
  return {"PATH=" + directory.path().string() + ":/usr/bin:/bin",
          "TMPDIR=" + directory.path().string(),
          "SLURM_JOB_ID=4711",
          "SLURM_JOB_NODELIST=n[1-" + count + "]",
          "SLURM_JOB_NUM_NODES=" + count,
          "SLURM_JOB_CPUS_PER_NODE=40(x" + count + ")",
          "SLURMD_NODENAME=n1",
          "SLURM_GPUS_PER_NODE=" + gpus,
          "SLURM_GPUS_ON_NODE=" + gpus};
}

Run RunOnce(const std::vector<std::string>& words, const std::vector<std::string>& environment,
            const std::string& output) {
  const auto pointers = [](const std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
    list.push_back(nullptr);
    return list;
  };
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(environment);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  int status = 0;
  rusage usage = {};
  if (wait4(child, &status, 0, &usage) != child) throw std::runtime_error("wait4");
  const std::chrono::duration<double, std::milli> lasted = std::chrono::steady_clock::now() - start;
  const auto milliseconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return {lasted.count(), milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime),
          static_cast<double>(usage.ru_maxrss) / 1024,
          WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
}

double Median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

// The median times and the most memory of `rounds` runs.
Run Measure(int rounds, const std::vector<std::string>& words,
            const std::vector<std::string>& environment, const std::string& output,
            int expected_exit_code) {
  std::vector<double> times;
  std::vector<double> cpu_times;
  Run result;
  for (int round = 0; round <= rounds; ++round) {  // the first warms up
    const Run run = RunOnce(words, environment, output);
    if (run.exit_code != expected_exit_code) {
      throw std::runtime_error(words[0] + " ended with " + std::to_string(run.exit_code) +
                               ", see what it wrote with `" + words[0] + " " + words[1] + " ...`");
    }
    if (round > 0) times.push_back(run.milliseconds);
    if (round > 0) cpu_times.push_back(run.cpu_milliseconds);
    result.mebibytes = std::max(result.mebibytes, run.mebibytes);
  }
  result.milliseconds = Median(times);
  result.cpu_milliseconds = Median(cpu_times);
  return result;
}

// What srun says of itself, and `action` for the ranks.
std::string SrunScript(const std::string& action) {
  return "#!/bin/sh\ncase $1 in\n--mpi=list) echo 'MPI plugin types are...'; echo none ;;\n"
         "--version) echo slurm 24.11.5 ;;\n*) " +
         action + " ;;\nesac\n";
}

// What the shims and srun write on standard error when all ranks die at once; srun has to put the
// key of their reports in (launcher/protocol/rank_job.h: the third word).
std::string Storm(int ranks) {
  std::string text;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string number = std::to_string(rank);
    for (int line = 0; line < 10; ++line) {
      text +=
          "ddlrun-rank[KEY]: rank " + number + " | RuntimeError: NCCL communicator was aborted\n";
    }
    text += "ddlrun-rank[KEY]: rank " + number + " on n" + std::to_string(rank / kGpus + 1) +
            " (pid 4711) ended with signal 6 (Aborted) at 2026-11-22T12:13:22.801234Z\n";
  }
  for (int rank = 0; rank < ranks; rank += kGpus) {
    text += "srun: error: n" + std::to_string(rank / kGpus + 1) + ": tasks " +
            std::to_string(rank) + "-" + std::to_string(rank + kGpus - 1) + ": Aborted\n";
  }
  return text;
}

// Its columns; how much it grew is of CPU time, which a busy machine disturbs less.
void PrintRun(const Run& run, const Run& before) {
  std::printf(" | %8.1f %8.1f ", run.milliseconds, run.cpu_milliseconds);
  if (before.cpu_milliseconds > 0) {
    std::printf("%6.1f", run.cpu_milliseconds / before.cpu_milliseconds);
  } else {
    std::printf("%6s", "-");
  }
  std::printf(" %6.1f", run.mebibytes);
}

void PrintPlans(int rounds, const std::string& ddlrun, const ScratchDirectory& directory) {
  WriteProgram(directory, "srun", SrunScript("exit 0"));
  std::printf("%14s | %31s | %31s\n", "", "plan", "start");
  std::printf("%6s %7s", "nodes", "ranks");
  for (int i = 0; i < 2; ++i) std::printf(" | %8s %8s %6s %6s", "ms", "CPU ms", "growth", "MiB");
  std::printf("\n");
  const std::vector<std::string> options = {"--topology", kTopology, "--pmi", "none", "true"};
  std::vector<std::string> plan_words = {ddlrun, "--dry-run"};
  plan_words.insert(plan_words.end(), options.begin(), options.end());
  std::vector<std::string> start_words = {ddlrun};
  start_words.insert(start_words.end(), options.begin(), options.end());
  Run plan_before;
  Run start_before;
  for (const int nodes : {64, 256, 1024, 4096, 16384}) {
    const std::vector<std::string> environment = EnvironmentOf(nodes, directory);
    const Run plan = Measure(rounds, plan_words, environment, "/dev/null", 0);
    const Run start = Measure(rounds, start_words, environment, "/dev/null", 0);
    std::printf("%6d %7d", nodes, nodes * kGpus);
    PrintRun(plan, plan_before);
    PrintRun(start, start_before);
    std::printf("\n");
    plan_before = plan;
    start_before = start;
  }
}

void PrintStorm(int rounds, const std::string& ddlrun, const ScratchDirectory& directory) {
  constexpr int kNodes = 4096;
  WriteProgram(directory, "storm", Storm(kNodes * kGpus));
  const std::string storm = (directory.path() / "storm").string();
  const std::string output = (directory.path() / "output").string();
  const std::vector<std::string> environment = EnvironmentOf(kNodes, directory);
  const std::vector<std::string> words = {ddlrun, "--topology",         kTopology, "--pmi",
                                          "none", "--no-ddl-host-list", "true"};
  const std::string write =
      "sed \"s/KEY/$(echo \"$DDLRUN_RANK_JOB\" | cut -d ' ' -f 3)/\" " + storm;
  WriteProgram(directory, "srun", SrunScript(write + " > /dev/null; exit 134"));
  const Run quiet = Measure(rounds, words, environment, output, EX_UNAVAILABLE);
  WriteProgram(directory, "srun", SrunScript(write + " >&2; exit 134"));
  const Run run = Measure(rounds, words, environment, output, 134);
  std::printf(
      "\n%d ranks die at once and write %.1f MB: %.1f ms (%.1f of CPU) more than when nobody says "
      "anything, %.1f MiB; ddlrun itself says %lu bytes\n",
      kNodes * kGpus, static_cast<double>(fs::file_size(storm)) / 1e6,
      run.milliseconds - quiet.milliseconds, run.cpu_milliseconds - quiet.cpu_milliseconds,
      run.mebibytes, static_cast<unsigned long>(fs::file_size(output)));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int rounds = argc > 1 ? support::WholeNumber<int>(argv[1]).value_or(0) : 9;
    if (rounds < 1 || argc > 2) {
      std::fprintf(stderr, "usage: plan_cost [ROUNDS]\n");
      return 64;
    }
    const fs::path own = fs::read_symlink("/proc/self/exe").parent_path();
    const std::string ddlrun = (own.parent_path() / "bin/ddlrun").string();
    const ScratchDirectory directory("plan_cost");
    PrintPlans(rounds, ddlrun, directory);
    PrintStorm(rounds, ddlrun, directory);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plan_cost: %s\n", error.what());
    return 70;
  }
}
