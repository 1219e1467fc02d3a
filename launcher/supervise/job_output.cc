// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/job_output.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "support/number.h"

namespace launcher {

JobOutput::JobOutput(std::chrono::milliseconds timeout)
    : timeout_(timeout), stdout_(std::make_unique<OutputQueue>(STDOUT_FILENO)) {
  // Where both are the same file they have one queue: a line from one queue could end up within a
  // line from another.
  if (!AreSameFile(STDOUT_FILENO, STDERR_FILENO)) {
    stderr_ = std::make_unique<OutputQueue>(STDERR_FILENO);
  }
}

OutputQueue* JobOutput::QueueOf(int fd) const {
  return fd == STDERR_FILENO && stderr_ != nullptr ? stderr_.get() : stdout_.get();
}

void JobOutput::ShowBy(const ConsoleOptions& options) {
  console_ = std::make_unique<RankConsole>(
      options, [this](int to, std::string_view text) { QueueOf(to)->Add(text); });
}

void JobOutput::Add(support::Descriptor from, int to, LineReader::Unit unit,
                    std::function<std::optional<std::string>(std::string_view)> on_text) {
  OutputQueue* const queue = QueueOf(to);
  streams_.push_back(
      {LineReader(std::move(from), unit,
                  [this, queue, on_text = std::move(on_text)](std::string_view text) {
                    const std::optional<std::string> instead = on_text(text);
                    if (instead) text = *instead;
                    if (text.empty()) return;
                    if (console_ != nullptr) console_->Flush();
                    queue->Add(text);
                  }),
       queue});
}

void JobOutput::Show(int rank, int to, std::string_view text) {
  console_->Add(rank, to, text, RankConsole::Clock::now());
}

void JobOutput::Say(const std::string& line) {
  if (console_ != nullptr) console_->Flush();
  QueueOf(STDERR_FILENO)->Add(line + "\n");
}

bool JobOutput::EndConsole() {
  if (console_ != nullptr) std::exchange(console_, nullptr)->End();
  return IsWaiting();
}

void JobOutput::AppendTo(std::vector<pollfd>* ready) const {
  for (const Stream& stream : streams_) {
    if (stream.reader.is_open() && stream.queue->HasCapacity()) {
      ready->push_back({stream.reader.fd(), POLLIN, 0});
    }
  }
  for (const OutputQueue* queue : {stdout_.get(), stderr_.get()}) {
    if (queue != nullptr && !queue->IsEmpty()) ready->push_back({queue->fd(), POLLOUT, 0});
  }
}

void JobOutput::ExpectEnd() {
  if (!ending_since_) ending_since_ = OutputQueue::Clock::now();
}

void JobOutput::ExpectLast() {
  for (Stream& stream : streams_) stream.reader.ReadNoMoreThanThePipeHolds();
}

// When the time for a reader that takes nothing is over.
std::optional<OutputQueue::Clock::time_point> JobOutput::deadline() const {
  std::optional<OutputQueue::Clock::time_point> first;
  for (const OutputQueue* queue : {stdout_.get(), stderr_.get()}) {
    if (queue == nullptr || queue->IsEmpty() || !ending_since_ || IsStuck(*queue)) continue;
    const auto end = std::max(queue->taken_at(), *ending_since_) + timeout_;
    first = first ? std::min(*first, end) : end;
  }
  if (console_ != nullptr) {
    if (const auto end = console_->deadline()) first = first ? std::min(*first, *end) : *end;
  }
  return first;
}

bool JobOutput::IsStuck(const OutputQueue& queue) const {
  return ending_since_ && !queue.IsEmpty() &&
         OutputQueue::Clock::now() >= std::max(queue.taken_at(), *ending_since_) + timeout_;
}

bool JobOutput::IsWaiting() const {
  return !stdout_->IsEmpty() || (stderr_ != nullptr && !stderr_->IsEmpty());
}

bool JobOutput::IsHeld() const {
  return !stdout_->HasCapacity() || (stderr_ != nullptr && !stderr_->HasCapacity());
}

bool JobOutput::Relay() {
  bool is_busy = false;
  for (Stream& stream : streams_) {
    if (stream.reader.is_open() && stream.queue->HasCapacity()) is_busy |= stream.reader.Read();
  }
  if (console_ != nullptr) console_->Advance(RankConsole::Clock::now());
  for (OutputQueue* queue : {stdout_.get(), stderr_.get()}) {
    if (queue == nullptr) continue;
    if (!queue->Write()) is_closed_ = true;
    if (IsStuck(*queue)) {
      queue->DropWhatDoesNotFit();
      if (expects_nothing_) queue->DropAll();
    }
  }
  return is_busy || IsWaiting();
}

std::vector<std::string> JobOutput::Notes() const {
  std::vector<std::string> notes;
  for (const OutputQueue* queue : {stdout_.get(), stderr_.get()}) {
    if (queue == nullptr || queue->dropped_lines() == 0) continue;
    const long lines = queue->dropped_lines();
    const std::string stream =
        std::string("standard ") + (queue == stdout_.get() ? "output" : "error");
    notes.push_back(
        support::Counted(lines, "line") + " of output " + (lines == 1 ? "was" : "were") +
        " dropped: " +
        (queue->problem().empty() ? "nobody reads " + stream : stream + ": " + queue->problem()));
  }
  return notes;
}

}  // namespace launcher
