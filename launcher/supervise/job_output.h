// SPDX-License-Identifier: Apache-2.0
//
// The outputs of all children of a job on their way to ddlrun's own standard output and error.

#pragma once

#include <poll.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/system/line_reader.h"
#include "launcher/system/output_queue.h"

namespace launcher {

class JobOutput {
 public:
  // `patience`: how long a reader may take nothing while the job is ending.
  explicit JobOutput(std::chrono::milliseconds patience);

  // What comes out of `from` goes to `to` (1 or 2), `tag` in front.  `on_text` is given each line
  // (with its end) or chunk first, and says what goes there in place of it, if anything else does.
  void Add(Descriptor from, int to, LineReader::Unit unit, const std::string& tag,
           std::function<std::optional<std::string>(std::string_view)> on_text);

  // What to poll for; a child whose output cannot be taken now is left waiting.
  void AppendTo(std::vector<pollfd>* ready) const;
  // When Relay is to be called although nothing is ready; nullopt: never.
  std::optional<OutputQueue::Clock::time_point> deadline() const;

  // From now on children do not wait for readers longer than the patience.
  void ExpectEnd();
  // All children have ended: what others have in the same pipes is read only as far as a pipe can
  // hold it.
  void ExpectLast();
  // ... and ddlrun was told to stop: nor does it wait for readers.
  void ExpectNothing() { expects_nothing_ = true; }

  // Passes on what is there.  True when there was something, or something waits for its reader.
  bool Relay();
  // Whether a reader has not taken all yet.
  bool IsWaiting() const;
  // Whether children wait for a reader: what they say then is read later.
  bool IsHeld() const;
  // Whether nobody can read one of the two any more.
  bool IsClosed() const { return is_closed_; }
  // "12 lines of output were dropped: nobody reads standard output", or "... : standard output: No
  // space left on device".
  std::vector<std::string> Notes() const;

 private:
  struct Stream {
    LineReader reader;
    OutputQueue* queue;
  };

  OutputQueue* QueueOf(int fd) const;
  bool IsStuck(const OutputQueue& queue) const;

  const std::chrono::milliseconds patience_;
  std::unique_ptr<OutputQueue> stdout_;
  std::unique_ptr<OutputQueue> stderr_;  // null where standard error is the same file
  std::deque<Stream> streams_;
  std::optional<OutputQueue::Clock::time_point> ending_since_;
  bool expects_nothing_ = false;
  bool is_closed_ = false;
};

}  // namespace launcher
