// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/output_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace launcher {

void StreamTail::Add(const char* text, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (text[i] == '\n' || text[i] == '\r') {
      End();
    } else if (length_ < kReportedLineBytes) {
      lines_[kReportedLines][length_++] = text[i];
    }
  }
}

void StreamTail::End() {
  if (length_ == 0) return;
  char* line = lines_[count_ % kReportedLines];
  memcpy(line, lines_[kReportedLines], length_);
  line[length_] = '\0';
  length_ = 0;
  ++count_;
}

bool OutputRelay::Open(int log) {
  log_ = log;
  streams_[0].to = STDERR_FILENO;
  if (log >= 0) streams_[1].to = STDOUT_FILENO;
  for (Stream& stream : streams_) {
    if (stream.to < 0) continue;
    int ends[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    stream.read_end = ends[0];
    stream.write_end = ends[1];
    fcntl(stream.read_end, F_SETFL, O_NONBLOCK);
  }
  return true;
}

void OutputRelay::ConnectChild() const {
  for (const Stream& stream : streams_) {
    if (stream.to >= 0) dup2(stream.write_end, stream.to);
  }
}

void OutputRelay::CloseChildEnds() {
  for (const Stream& stream : streams_) {
    if (stream.to >= 0) close(stream.write_end);
  }
}

// False at the end of the stream.
bool OutputRelay::PassOn(const Stream& stream) {
  char chunk[16384];
  const ssize_t got = read(stream.read_end, chunk, sizeof(chunk));
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  const auto size = static_cast<size_t>(got);
  WriteAll(stream.to, chunk, size);
  if (log_ >= 0) WriteAll(log_, chunk, size);
  if (stream.to == STDERR_FILENO) last_lines_.Add(chunk, size);
  return size > 0;
}

int OutputRelay::WaitFor(pid_t child, void (*look)(void* context), void* context) {
  sigset_t nothing;
  sigemptyset(&nothing);
  pollfd ready[2] = {{streams_[0].read_end, POLLIN, 0}, {streams_[1].read_end, POLLIN, 0}};
  const auto pass_on = [&] {
    for (int i = 0; i < 2; ++i) {
      if (ready[i].revents != 0 && !PassOn(streams_[i])) ready[i].fd = -1;
    }
  };
  int status = 0;
  const timespec second = {1, 0};
  timespec last = {};
  while (waitpid(child, &status, WNOHANG) != child) {
    if (ppoll(ready, 2, &second, &nothing) > 0) pass_on();
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec == last.tv_sec) continue;
    last = now;
    look(context);
  }
  while (poll(ready, 2, 0) > 0) pass_on();
  last_lines_.End();
  return status;
}

}  // namespace launcher
