// SPDX-License-Identifier: Apache-2.0
//
// Runs ranks as child processes that meet through shared memory.

#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>

#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"
#include "trainer/comm/factory.h"
#include "trainer/core/error.h"
#include "trainer/core/stream.h"

namespace trainer {

class NoStream : public Stream {
 public:
  void Synchronize() override {}
};

// How a rank ended: its exit code (0: `body` returned), or 128 + the signal.  An Error that left
// `body` is written to <run_dir>/error-<rank>, and the exit code is its own.
class LocalRanks {
 public:
  using Body = std::function<void(const CommOptions& options)>;

  explicit LocalRanks(int size) : size_(size) {}

  CommOptions Options(int rank) const {
    CommOptions options;
    options.rank = rank;
    options.size = size_;
    options.launcher = "local";
    options.run_dir = run_dir_;
    options.rendezvous_seconds = 20;
    options.stall_seconds = 20;
    return options;
  }

  // Starts all ranks and waits for them.
  std::vector<int> Run(const Body& body) {
    std::vector<pid_t> children;
    for (int rank = 0; rank < size_; ++rank) {
      const pid_t child = ::fork();
      if (child == 0) RunRank(rank, body);
      children.push_back(child);
    }
    std::vector<int> codes;
    for (const pid_t child : children) {
      int status = 0;
      EXPECT_EQ(::waitpid(child, &status, 0), child);
      codes.push_back(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    }
    return codes;
  }

  // The message of the Error of `rank`, or "".
  std::string ErrorOf(int rank) const;
  const std::string& run_dir() const { return run_dir_; }

 private:
  [[noreturn]] void RunRank(int rank, const Body& body) const;

  int size_;
  const TemporaryDirectory directory_;
  const std::string run_dir_ = directory_.path();
};

}  // namespace trainer
