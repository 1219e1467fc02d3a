// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/orphans.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

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

Orphans::Orphans() : no_orphans_(Children()) { prctl(PR_SET_CHILD_SUBREAPER, 1); }

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

void Orphans::End(pid_t session, std::chrono::milliseconds patience) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  bool were_told = false;
  std::optional<Clock::time_point> killed_at;  // first
  for (std::vector<pid_t> left = Left(session); !left.empty(); left = Left(session)) {
    const Clock::time_point now = Clock::now();
    // From the kill: this process may have been kept waiting itself, and have killed none so far.
    if (killed_at && now - *killed_at > 2 * patience) return;
    // Those that come later are children of one that was killed.
    if (now - start > 2 * patience) {
      for (const pid_t pid : left) kill(pid, SIGKILL);
      if (!killed_at) killed_at = now;
    } else if (now - start > patience && !were_told) {
      for (const pid_t pid : left) kill(pid, SIGTERM);
      were_told = true;
    }
    std::this_thread::sleep_for(std::min(patience / 10, std::chrono::milliseconds(10)));
  }
}

std::vector<pid_t> Orphans::Left(pid_t session) const {
  std::vector<pid_t> left;
  for (const pid_t pid : Orphaned()) {
    if (waitpid(pid, nullptr, WNOHANG) == 0 && getsid(pid) == session) left.push_back(pid);
  }
  return left;
}

std::vector<pid_t> Orphans::Orphaned() const {
  std::vector<pid_t> children = Children();
  std::erase_if(children, [this](pid_t pid) {
    return std::ranges::find(no_orphans_, pid) != no_orphans_.end();
  });
  return children;
}

}  // namespace launcher
