// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/output_relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "launcher/error.h"

namespace launcher {

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

OutputRelay::OutputRelay(int log) : log_(log) {
  streams_[0].to = STDERR_FILENO;
  if (log >= 0) streams_[1].to = STDOUT_FILENO;
  for (Stream& stream : streams_) {
    if (stream.to < 0) continue;
    std::array<int, 2> ends = {-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw LaunchError(EX_OSERR, std::string("cannot make a pipe: ") + std::strerror(errno));
    }
    stream.read_end = ends[0];
    stream.write_end = ends[1];
    fcntl(stream.read_end, F_SETFL, O_NONBLOCK);
  }
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
  std::array<char, 16384> chunk;
  const ssize_t got = read(stream.read_end, chunk.data(), chunk.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  const std::string_view text(chunk.data(), static_cast<std::size_t>(got));
  WriteAll(stream.to, text);
  if (log_ >= 0) WriteAll(log_, text);
  if (stream.to == STDERR_FILENO) Remember(text);
  return got > 0;
}

void OutputRelay::Remember(std::string_view text) {
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      last_lines_.Add(unfinished_line_);
      unfinished_line_.clear();
    } else if (unfinished_line_.size() < Tail::kLineBytes) {
      unfinished_line_ += c;
    }
  }
}

int OutputRelay::WaitFor(pid_t child) {
  sigset_t nothing;
  sigemptyset(&nothing);
  std::array<pollfd, 2> ready = {
      {{streams_[0].read_end, POLLIN, 0}, {streams_[1].read_end, POLLIN, 0}}};
  const auto pass_on = [&] {
    for (std::size_t i = 0; i < ready.size(); ++i) {
      if (ready[i].revents != 0 && !PassOn(streams_[i])) ready[i].fd = -1;
    }
  };
  int status = 0;
  while (waitpid(child, &status, WNOHANG) != child) {
    if (ppoll(ready.data(), ready.size(), nullptr, &nothing) > 0) pass_on();
  }
  while (poll(ready.data(), ready.size(), 0) > 0) pass_on();
  last_lines_.Add(unfinished_line_);
  return status;
}

}  // namespace launcher
