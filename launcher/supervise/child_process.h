// SPDX-License-Identifier: Apache-2.0
//
// One child of ddlrun, in a process group of its own.

#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

namespace launcher {

// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void Close();

 private:
  int fd_ = -1;
};

struct ChildSpec {
  std::vector<std::string> argv;         // argv[0] is a path
  std::vector<std::string> environment;  // "NAME=value"
  int death_signal = SIGKILL;            // what the kernel sends it when ddlrun dies
  bool reads_stdin = false;              // ddlrun's own, unless that is a terminal; else /dev/null
  bool capture_stdout = true;            // false: ddlrun's own
  bool capture_stderr = true;
  sigset_t signal_mask = {};
};

struct ChildProcess {
  pid_t pid = 0;           // also its process group
  Descriptor stdout_pipe;  // non-blocking; not open when not captured
  Descriptor stderr_pipe;
};

// Throws LaunchError: EX_UNAVAILABLE when argv[0] cannot be executed, EX_OSERR when the system has
// no more processes or files.  Single-threaded callers only: between fork and exec nothing but
// system calls is made.
ChildProcess StartChild(const ChildSpec& spec);

}  // namespace launcher
