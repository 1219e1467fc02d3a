// SPDX-License-Identifier: Apache-2.0
//
// How the processes of the check, one on each node, find each other: by PMIx, which srun --mpi=pmix
// and mpirun have for the processes that they start.  It is in rendezvous_pmix.cc, or in
// rendezvous_none.cc for a build without PMIx.

#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace launcher {

class Rendezvous {
 public:
  // Why there can be none: this build has no PMIx, or it cannot be loaded here.  "": there can.
  static std::string Problem();
  // The version of PMIx, "4.2.2"; "" when there can be none.
  static std::string LibraryVersion();

  // Joins the others.  There may be one of these objects at a time.  Throws
  // LaunchError(EX_UNAVAILABLE) when PMIx fails, or with Problem().
  Rendezvous();
  // Leaves them.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Gives `value` to the others after the next Meet.  Throws LaunchError(EX_UNAVAILABLE).
  void Publish(const std::string& key, const std::string& value) const;
  // What `rank` has published.  Throws LaunchError(EX_UNAVAILABLE).
  std::string Get(int rank, const std::string& key) const;

  // Waits until all processes have called it, and calls `meanwhile` again and again.  False when
  // `deadline` is over before; then only FindSilent and the destructor may be called.
  bool Meet(std::chrono::steady_clock::time_point deadline,
            const std::function<void()>& meanwhile) const;

  // Asks each of `ranks` for what it has published as `key`.  Returns those that have not answered
  // by `deadline`.
  std::vector<int> FindSilent(const std::vector<int>& ranks, const std::string& key,
                              std::chrono::steady_clock::time_point deadline) const;

 private:
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace launcher
