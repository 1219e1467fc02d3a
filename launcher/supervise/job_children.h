// SPDX-License-Identifier: Apache-2.0
//
// The children of a job: its ranks, or the srun or mpirun that stands for all of them.

#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/spawn/spawner.h"
#include "launcher/supervise/job_output.h"
#include "launcher/supervise/supervisor.h"
#include "launcher/supervise/tail.h"
#include "launcher/system/child_process.h"

namespace launcher {

struct JobChild {
  ChildCommand::Kind kind = ChildCommand::Kind::kRank;
  int rank = -1;
  pid_t pid = 0;
  bool has_ended = false;
  Tail tail;  // of a rank
  Descriptor log;
};

class JobChildren {
 public:
  explicit JobChildren(const SupervisorOptions& options) : options_(options) {}
  // Only after an exception are children left here.
  ~JobChildren();
  JobChildren(const JobChildren&) = delete;
  JobChildren& operator=(const JobChildren&) = delete;

  // Starts one; its output goes to `output`.  `on_launcher_line` is given each line that srun or
  // mpirun writes on standard error, without its end, and says what the user sees in place of it,
  // with an end, if that is not the line itself.  Throws as StartChild
  // does, and LaunchError(EX_OSERR) for a log file that cannot be written.
  void Start(const ChildCommand& command, const sigset_t& signal_mask, JobOutput* output,
             const std::function<std::optional<std::string>(std::string_view)>& on_launcher_line);

  ChildCommand::Kind kind() const { return children_[0]->kind; }  // all are of one
  bool AllEnded() const;
  const JobChild* FindRank(int rank) const;

  // To the process groups of all that have not ended.
  void Signal(int number) const;
  // A signal that ddlrun was sent, as the ranks are to get it.
  void RelaySignal(int number) const;
  // `on_end` is called for each that has ended meanwhile, when nothing of its group is left.
  void Reap(const std::function<void(const JobChild&, const siginfo_t&)>& on_end);

 private:
  const SupervisorOptions& options_;
  std::vector<std::unique_ptr<JobChild>> children_;
};

// srun and mpirun end their ranks within seconds of their own SIGTERM.
inline constexpr std::chrono::milliseconds kGraceOfOthers{8000};

}  // namespace launcher
