// SPDX-License-Identifier: Apache-2.0
//
// The timeout of the start of the ranks: start_seconds of the site file.

#pragma once

#include "launcher/features/feature.h"

namespace launcher {

extern const Feature kStartLimit;

// Ends a job whose shims have not all reported within `limit` that their programs run, and names
// the nodes of the others.  The time begins anew when srun has waited for resources.  There is no
// limit where ddlrun starts the ranks itself, nor under an mpirun from which no shim has reported:
// options of the user (--mpiarg) may send the output of the ranks elsewhere.  An mpirun without any
// child process has a limit all the same, since it can have started neither a rank nor a daemon.
class StartLimit : public JobWatcher {
 public:
  explicit StartLimit(std::chrono::milliseconds limit) : limit_(limit) {}

  void OnLaunch(WatchedJob& job) override;
  void OnEvent(WatchedJob& job, Event event) override;
  void OnContinue(WatchedJob& job) override;
  void Poll(WatchedJob& job) override;
  void OnEnd(const WatchedJob& job, JobResult* result) override;
  Deadline deadline() const override { return deadline_; }

 private:
  const std::chrono::milliseconds limit_;
  Deadline deadline_;
  std::vector<std::string> not_started_;  // nodes, once the limit is over
};

// The nodes of the ranks that are not in `started`, each once, in the order of its first rank.
// Pure.
std::vector<std::string> NodesNotStarted(const std::vector<std::string>& hosts,
                                         const std::set<int>& started);

}  // namespace launcher
