// SPDX-License-Identifier: Apache-2.0
//
// How the check's processes, one per node, find each other: PMIx, which srun --mpi=pmix and mpirun
// give to what they start.  rendezvous_pmix.cc, or rendezvous_none.cc in a build without PMIx.

#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace launcher {

class Rendezvous {
 public:
  // "4.2.2"; "" when this build has none.
  static std::string LibraryVersion();

  // Joins the others.  Throws LaunchError(EX_UNAVAILABLE) when PMIx fails.  One at a time.
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

  // Waits until all are here, calling `meanwhile` again and again.  False when that takes longer
  // than until `deadline`; then nothing but FindSilent and the destructor may be called.
  bool Meet(std::chrono::steady_clock::time_point deadline,
            const std::function<void()>& meanwhile) const;

  // Asks each of `ranks` by itself for what it published as `key`; those that have not answered by
  // `deadline`.
  std::vector<int> FindSilent(const std::vector<int>& ranks, const std::string& key,
                              std::chrono::steady_clock::time_point deadline) const;

 private:
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace launcher
