// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/orphans.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>

#include "launcher/shim/leftovers.h"

namespace launcher {
namespace {

// None where the kernel does not tell them (CONFIG_PROC_CHILDREN, which distributions have).
std::vector<pid_t> Children() {
  const std::string self = std::to_string(getpid());
  std::ifstream file("/proc/" + self + "/task/" + self + "/children");
  std::vector<pid_t> children;
  for (pid_t pid = 0; file >> pid;) children.push_back(pid);
  return children;
}

}  // namespace

Orphans::Orphans() : no_orphans_(Children()) { AdoptOrphans(); }

Orphans::~Orphans() { prctl(PR_SET_CHILD_SUBREAPER, 0); }

void Orphans::Reap(const std::vector<pid_t>& children) const {
  siginfo_t info = {};
  const bool has_any_ended =
      waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
  if (!has_any_ended) return;
  for (const pid_t pid : Orphaned()) {
    if (std::ranges::find(children, pid) == children.end()) waitpid(pid, nullptr, WNOHANG);
  }
}

std::vector<std::string> Orphans::End(std::chrono::milliseconds terminate_after) const {
  LeftoverOptions options;
  options.spared = no_orphans_.data();
  options.spared_count = static_cast<int>(no_orphans_.size());
  options.terminate_after_ms = static_cast<int>(terminate_after.count());
  const Survivors left = EndLeftovers(options);
  std::vector<std::string> notes;
  for (int i = 0; i < left.count && i < kMaxSurvivors; ++i) {
    const Survivor& process = left.first[i];
    notes.push_back("ranks have left process " + std::to_string(process.pid) + " (" + process.name +
                    ") here, which SIGKILL does not end");
  }
  return notes;
}

std::vector<pid_t> Orphans::Orphaned() const {
  std::vector<pid_t> children = Children();
  std::erase_if(children, [this](pid_t pid) {
    return std::ranges::find(no_orphans_, pid) != no_orphans_.end();
  });
  return children;
}

}  // namespace launcher
