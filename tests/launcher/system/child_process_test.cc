// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/child_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

namespace launcher {
namespace {

// What a child prints that looks at its standard streams, started by a process that has closed
// those of `closed`.
std::string StreamsOfChild(const std::string& closed) {
  std::array<int, 2> ends = {-1, -1};
  if (pipe(ends.data()) != 0) return "no pipe";
  const pid_t starter = fork();
  if (starter == 0) {
    for (const char digit : closed) close(digit - '0');
    ChildSpec spec;
    spec.argv = {"/bin/sh", "-c",
                 "for fd in 0 1 2; do [ -e /proc/$$/fd/$fd ] && printf $fd; done; readlink "
                 "/proc/$$/fd/0; echo error >&2"};
    spec.environment = {"PATH=/usr/bin:/bin"};
    sigemptyset(&spec.signal_mask);
    ChildProcess child = StartChild(spec);
    waitpid(child.pid, nullptr, 0);
    std::array<char, 200> text = {};
    for (const support::Descriptor* from : {&child.stdout_pipe, &child.stderr_pipe}) {
      const ssize_t got = read(from->fd(), text.data(), text.size());
      if (got > 0 && write(ends[1], text.data(), static_cast<std::size_t>(got)) != got) _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 200> part = {};
  ssize_t got = 0;
  while ((got = read(ends[0], part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  waitpid(starter, nullptr, 0);
  return text;
}

TEST(StartChild, GivesAllStandardStreamsAlthoughItsOwnAreClosed) {
  for (const char* closed : {"", "0", "01", "02", "12", "012"}) {
    EXPECT_EQ(StreamsOfChild(closed), "012/dev/null\nerror\n") << closed;
  }
}

}  // namespace
}  // namespace launcher
