// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/attach.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <map>
#include <system_error>

#include "ddlctl/status_text.h"
#include "launcher/diagnose/process.h"
#include "launcher/launch/child_environment.h"
#include "launcher/protocol/attachment.h"
#include "launcher/system/files.h"
#include "support/quoting.h"
#include "trainer/core/error.h"

namespace ddlctl {
namespace {

using launcher::NodeFacts;
using launcher::RankFacts;
using trainer::Error;

std::vector<char*> PointersTo(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

void Note(const std::string& text) { std::fputs(("ddlctl: " + text + "\n").c_str(), stderr); }

// The rank, and its node.  Throws for one that is not there.
std::pair<const NodeFacts*, const RankFacts*> FindRank(const std::vector<NodeFacts>& nodes,
                                                       const AttachOptions& options) {
  int world = 0;
  for (const NodeFacts& node : nodes) {
    for (const RankFacts& rank : node.ranks) {
      if (rank.rank == options.rank) return {&node, &rank};
      world = std::max(world, rank.world);
    }
  }
  if (options.rank >= world) {
    throw Error(EX_USAGE, fmt::format("there is no rank {}: the job has ranks 0 to {}",
                                      options.rank, world - 1));
  }
  const launcher::HangingJob job = HangingJobOf(nodes, nodes.size());
  const auto ended = job.ended.find(options.rank);
  throw Error(
      EX_UNAVAILABLE,
      ended != job.ended.end()
          ? fmt::format("rank {} has ended, with exit code {}: choose another one", options.rank,
                        ended->second)
          : fmt::format("rank {} was not found on the nodes that were looked at; ddlctl why "
                        "-v {} says which ranks run where",
                        options.rank, options.job.name));
}

volatile pid_t command_pid = 0;

// Until the command has ended.  Ctrl-C reaches it from the terminal.
int WaitForCommand(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int StartHere(const RankFacts& rank, const AttachOptions& options) {
  const int pid = FocusOf(rank).pid;
  launcher::Environment environment = launcher::EnvironmentOf(pid);
  if (environment.empty()) {
    throw Error(EX_UNAVAILABLE, fmt::format("rank {} has ended meanwhile", options.rank));
  }
  // That of the screen on which the command is seen.
  const std::string term = launcher::ValueOr(options.job.environment, "TERM", "");
  if (!term.empty()) environment["TERM"] = term;
  const std::string directory = fmt::format("/proc/{}/cwd", pid);
  const bool is_shell = options.command.empty();
  const std::string shell = launcher::ValueOr(options.job.environment, "SHELL", "");
  std::vector<std::string> command =
      is_shell ? std::vector<std::string>{shell.starts_with('/') ? shell : "/bin/sh"}
               : CommandOfRank(options.command, options.rank, pid);
  std::vector<std::string> variables = launcher::ToStrings(environment);
  const int lock =
      launcher::AttachToRank(rank.processes.front().parent, rank.processes.front().pid);
  if (lock < 0) {
    Note("limits of ddlrun (--hang-after, --end-limit) are not suspended meanwhile: " +
         std::generic_category().message(errno));
  }
  if (is_shell && options.on_terminal) {
    Note(fmt::format("a shell beside rank {}, process {} ({}) on {}; exit ends it", options.rank,
                     pid, Harmless(FocusOf(rank).name), Harmless(options.job.host)));
  }
  for (const int number : {SIGINT, SIGQUIT}) std::signal(number, SIG_IGN);
  const std::vector<char*> arguments = PointersTo(command);
  const std::vector<char*> settings = PointersTo(variables);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw trainer::OsError("cannot start the command", errno);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGHUP);
    if (getppid() != parent) _exit(128 + SIGHUP);
    for (const int number : {SIGINT, SIGQUIT}) std::signal(number, SIG_DFL);
    environ = const_cast<char**>(settings.data());
    if (chdir(directory.c_str()) != 0) {
      Note(fmt::format("cannot enter the working directory of rank {}: {}", options.rank,
                       std::generic_category().message(errno)));
      _exit(EX_UNAVAILABLE);
    }
    execvp(arguments[0], arguments.data());
    const int error = errno;
    Note(fmt::format("cannot start '{}' on {} in the environment of rank {}: {}; give its path",
                     Harmless(command[0]), Harmless(options.job.host), options.rank,
                     std::generic_category().message(error)));
    _exit(error == ENOENT ? 127 : 126);
  }
  command_pid = child;
  for (const int number : {SIGTERM, SIGHUP}) {
    std::signal(number, [](int signal) { kill(command_pid, signal); });
  }
  const int exit_code = WaitForCommand(child);
  if (lock >= 0) {
    launcher::DetachFromRank(lock, rank.processes.front().parent, rank.processes.front().pid);
  }
  return exit_code;
}

}  // namespace

std::vector<std::string> CommandOfRank(std::vector<std::string> command, int rank, int pid) {
  const std::pair<std::string, std::string> values[] = {{"{pid}", std::to_string(pid)},
                                                        {"{rank}", std::to_string(rank)}};
  for (std::string& word : command) {
    for (const auto& [name, value] : values) {
      for (std::size_t at = 0; (at = word.find(name, at)) != std::string::npos;) {
        word.replace(at, name.size(), value);
        at += value.size();
      }
    }
  }
  return command;
}

std::vector<std::string> AttachCommand(const std::string& srun, const std::string& job,
                                       const std::string& host, const std::string& name,
                                       const AttachOptions& options) {
  std::vector<std::string> words = {
      srun,      "--overlap",  "--jobid=" + job, "--nodelist=" + host, "--nodes=1", "--ntasks=1",
      "--mem=0", "--mpi=none", "--quiet"};
  if (options.on_terminal) words.emplace_back("--pty");
  words.insert(words.end(), {options.job.program.string(), "attach", "--here", "--srun=never", name,
                             std::to_string(options.rank)});
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

int RunBesideRank(const AttachOptions& options) {
  const FoundJob found = FindJob(options.job);
  const auto [node, rank] = FindRank(found.nodes, options);
  if (node->host == NameOfThisNode(options.job)) return StartHere(*rank, options);
  const std::string srun = launcher::FindProgram("srun", options.job.environment);
  std::vector<std::string> command =
      AttachCommand(srun, found.job, node->host, found.name, options);
  launcher::Environment variables = EnvironmentOutsideOfSteps(options.job.environment);
  variables["SLURM_CPU_BIND"] = "none";  // as for the ranks
  std::vector<std::string> environment = launcher::ToStrings(variables);
  execve(srun.c_str(), PointersTo(command).data(), PointersTo(environment).data());
  throw Error(EX_UNAVAILABLE, "cannot start " + srun + ": " +
                                  std::generic_category().message(errno) + "; log in to " +
                                  node->host + " and type the same there");
}

}  // namespace ddlctl
