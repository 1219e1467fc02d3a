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

void OutputMarks::SetKey(const char* key) {
  if (*key != '\0') mark_ = EmitOutputMark(key);
}

void OutputMarks::Write(int fd, const char* text, size_t size) {
  bool is_marked = false;
  size_t begin = 0;  // of what is not written yet
  for (size_t i = 0; i < size; ++i) {
    if (is_at_start_ && *mark_.text != '\0' && MayBeLineOfLauncher(text + i, size - i)) {
      WriteLines(fd, is_marked, text + begin, i - begin);
      begin = i;
      is_marked = true;
    }
    is_at_start_ = text[i] == '\n' || text[i] == '\r';
  }
  WriteLines(fd, is_marked, text + begin, size - begin);
}

void OutputMarks::WriteLines(int fd, bool is_marked, const char* text, size_t size) {
  if (!is_marked) return WriteAll(fd, text, size);
  const size_t length = strlen(mark_.text);
  memcpy(marked_, mark_.text, length);
  memcpy(marked_ + length, text, size);
  WriteAll(fd, marked_, length + size);
}

void WholeLines::Write(int fd, const char* text, size_t size) {
  memcpy(held_ + size_, text, size);
  size_ += size;
  size_t whole = size_;  // bytes up to the last line end
  while (whole > 0 && held_[whole - 1] != '\n' && held_[whole - 1] != '\r') --whole;
  if (whole == 0 && size_ > kMaxPiece) whole = size_;  // a line without an end
  WriteAll(fd, held_, whole);
  size_ -= whole;
  memmove(held_, held_ + whole, size_);
  if (size_ > kMaxPiece) Flush(fd);
}

void WholeLines::Flush(int fd) {
  WriteAll(fd, held_, size_);
  size_ = 0;
}

void OutputFrames::SetRank(const char* key, int rank) {
  constexpr FrameEnd kEnds[] = {kFrameOfLine, kFrameOfReturn, kFrameOfBeginning};
  for (int i = 0; i < 3; ++i) heads_[i] = EmitFrameHead(key, rank, kEnds[i]);
}

void OutputFrames::Write(int fd, const char* text, size_t size) {
  const size_t max = kFrameBytes - strlen(heads_[0].text) - 1;
  for (size_t i = 0; i < size; ++i) {
    if (text[i] == '\n' || text[i] == '\r') {
      AddFrame(fd, text[i] == '\n' ? kFrameOfLine : kFrameOfReturn);
    } else {
      if (size_ == max) AddFrame(fd, kFrameOfBeginning);
      held_[size_++] = text[i];
    }
  }
  WriteBatch(fd);
}

void OutputFrames::AddFrame(int fd, FrameEnd end) {
  const char* head = heads_[end == kFrameOfLine ? 0 : end == kFrameOfReturn ? 1 : 2].text;
  const size_t length = strlen(head);
  if (batch_size_ + length + size_ + 1 > sizeof(batch_)) WriteBatch(fd);
  char* const to = stpcpy(batch_ + batch_size_, head);
  memcpy(to, held_, size_);
  to[size_] = '\n';
  batch_size_ += length + size_ + 1;
  size_ = 0;
  has_begun_ = end == kFrameOfBeginning;
}

void OutputFrames::WriteBatch(int fd) {
  WriteAll(fd, batch_, batch_size_);
  batch_size_ = 0;
}

void OutputFrames::Flush(int fd) {
  if (size_ > 0) AddFrame(fd, kFrameOfBeginning);
  WriteBatch(fd);
}

void OutputFrames::End(int fd) {
  if (size_ > 0 || has_begun_) AddFrame(fd, kFrameOfLine);
  WriteBatch(fd);
}

bool OutputRelay::Open(const RelayOptions& options) {
  options_ = options;
  marks_.SetKey(options.key);
  for (OutputFrames& frames : frames_) frames.SetRank(options.key, options.rank);
  streams_[0].to = STDERR_FILENO;
  if (options.log >= 0 || options.passes_on_output || options.has_frames || !options.is_shown) {
    streams_[1].to = STDOUT_FILENO;
  }
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
  char chunk[OutputMarks::kMaxBytes];
  const ssize_t got = read(stream.read_end, chunk, sizeof(chunk));
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  const auto size = static_cast<size_t>(got);
  if (options_.log >= 0) WriteAll(options_.log, chunk, size);
  if (stream.to == STDERR_FILENO) last_lines_.Add(chunk, size);
  if (!options_.is_shown) return size > 0;
  if (options_.has_frames) {
    frames_[stream.to - 1].Write(stream.to, chunk, size);
  } else if (stream.to == STDERR_FILENO) {
    marks_.Write(stream.to, chunk, size);
  } else {
    lines_.Write(stream.to, chunk, size);
  }
  return size > 0;
}

void OutputRelay::PassOnReady() {
  for (int i = 0; i < 2; ++i) {
    if (ready_[i].revents != 0 && !PassOn(streams_[i])) ready_[i].fd = -1;
  }
}

int OutputRelay::WaitFor(pid_t child, int (*look)(void* context), void* context) {
  sigset_t nothing;
  sigemptyset(&nothing);
  for (int i = 0; i < 2; ++i) ready_[i].fd = streams_[i].read_end;
  int status = 0;
  for (bool has_ended = false;;) {
    int of_ended = 0;
    for (pid_t ended = 0; (ended = waitpid(-1, &of_ended, WNOHANG)) > 0;) {
      if (ended != child) continue;
      has_ended = true;
      status = of_ended;
    }
    if (has_ended) break;
    int limit = look(context);
    const bool is_holding =
        lines_.is_holding() || frames_[0].is_holding() || frames_[1].is_holding();
    if (is_holding && limit > WholeLines::kMaxWaitMs) limit = WholeLines::kMaxWaitMs;
    const timespec time = {limit / 1000, limit % 1000 * 1'000'000L};
    const int count = ppoll(ready_, 2, &time, &nothing);
    if (count > 0) PassOnReady();
    if (count == 0) FlushLines();
  }
  PassOnRest();
  EndLines();
  last_lines_.End();
  return status;
}

void OutputRelay::PassOnRest() {
  constexpr int kChunksOfLargestPipe = 64;  // 1 MiB, pipe(7)
  for (int i = 0; i < kChunksOfLargestPipe && poll(ready_, 2, 0) > 0; ++i) PassOnReady();
  FlushLines();
}

void OutputRelay::FlushLines() {
  lines_.Flush(STDOUT_FILENO);
  for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; ++fd) frames_[fd - 1].Flush(fd);
}

void OutputRelay::EndLines() {
  for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; ++fd) frames_[fd - 1].End(fd);
}

}  // namespace launcher
