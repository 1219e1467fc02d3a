// SPDX-License-Identifier: Apache-2.0
//
// Keeps a second training out of a model_dir: two would prune each other's checkpoints.
//
// The lock is flock(2) on <model_dir>/.ddltraind.lock, which the kernel takes back when its holder
// dies, of whatever.  On NFS and Lustre it holds between nodes; there a node that died may keep it
// until the server gives up on the node (NFS 4: 90 s as a rule), or for good (NFS 3).  The file
// says who holds it, for people; its content decides nothing.  On a file system without locks there
// is none, and that is said.

#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace trainer {

struct RunLockOptions {
  std::string job;  // of this process, in the scheduler; "": none
  // How long to wait for a holder, in seconds.  One on this host may be a run that is just being
  // ended.  Of one on another host, the file server may not have noticed that it is dead.
  double same_host_seconds = 5;
  double other_host_seconds = 100;
  std::function<void(const std::string&)> warn;  // one line each
  std::function<bool()> stop_requested = [] { return false; };
};

class RunLock {
 public:
  virtual ~RunLock() = default;  // lets go, and removes the file

  // Before something is written to model_dir, and now and then: a lock whose file was removed, as
  // with its directory, is taken anew, with a warning.  Throws Error(EX_CONFIG) where another run
  // has taken it meanwhile, Error(EX_OSERR) where the file cannot be made.
  virtual void Renew() = 0;
};

// Makes model_dir if it is not there.  Throws Error:
//   EX_CONFIG    another process holds it: with its host, process number, start and job, and what
//                to type
//   EX_TEMPFAIL  stop_requested while it waited
//   EX_OSERR     the directory or the file cannot be made
// Null, after a warning, where the file system knows no locks.
std::unique_ptr<RunLock> LockRun(const std::filesystem::path& model_dir,
                                 const RunLockOptions& options);

// Whether a run holds the lock of model_dir, on any node and in any container; false also where it
// cannot be known.  Where none does, it is taken for a moment.
bool IsRunIn(const std::filesystem::path& model_dir);

}  // namespace trainer
