// SPDX-License-Identifier: Apache-2.0
//
// Passes the output of all children of a job on to ddlrun's own standard output and standard error.

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

#include "launcher/supervise/rank_console.h"
#include "launcher/system/line_reader.h"
#include "launcher/system/output_queue.h"

namespace launcher {

class JobOutput {
 public:
  // While the job is ending, a reader may take nothing for as long as `timeout`.
  explicit JobOutput(std::chrono::milliseconds timeout);

  // Whether what is passed on to 1 and to 2 ends up in one file, where it could mix.
  bool JoinsStreams() const { return stderr_ == nullptr; }

  // Before the first Add: Show gets what ranks print.
  void ShowBy(const ConsoleOptions& options);
  bool has_console() const { return console_ != nullptr; }

  // Passes what comes out of `from` on to `to` (1 or 2).  `on_text` gets each line (with its end)
  // or chunk first, and returns what is passed on instead of it, or nullopt for the text itself.
  void Add(support::Descriptor from, int to, LineReader::Unit unit,
           std::function<std::optional<std::string>(std::string_view)> on_text);
  // What a rank has printed, with its line end or without.  REQUIRES: has_console().
  void Show(int rank, int to, std::string_view text);

  // Adds what to poll for.  A child whose output there is no room for is not read, and so it waits.
  void AppendTo(std::vector<pollfd>* ready) const;
  // When Relay is to be called although nothing is ready; nullopt: never.
  std::optional<OutputQueue::Clock::time_point> deadline() const;

  // Adds a line of ddlrun itself to standard error, behind all that ranks have printed.
  void Say(const std::string& line);

  // The job is ending: from now on no child waits for a reader longer than the timeout.
  void ExpectEnd();
  // All children have ended.  Processes that they have left behind may still write to the same
  // pipes: from now on no more is read than a pipe can hold.
  void ExpectLast();
  // All children have ended, and a stop of ddlrun was requested: it does not wait for readers
  // longer either.
  void ExpectNothing() { expects_nothing_ = true; }

  // Passes on what is there.  True when there was something, or some text waits for its reader.
  bool Relay();
  // Shows what still waits for lines of other ranks.  False where nothing did.
  bool EndConsole();
  // Whether some text waits for its reader.
  bool IsWaiting() const;
  // Whether children wait for a reader, so that what they say meanwhile is read later.
  bool IsHeld() const;
  // Whether nobody can read standard output, or standard error, any more.
  bool IsClosed() const { return is_closed_; }
  // Notes for the user: "12 lines of output were dropped: nobody reads standard output", or "... :
  // standard output: No space left on device".
  std::vector<std::string> Notes() const;

 private:
  struct Stream {
    LineReader reader;
    OutputQueue* queue;
  };

  OutputQueue* QueueOf(int fd) const;
  bool IsStuck(const OutputQueue& queue) const;

  const std::chrono::milliseconds timeout_;
  std::unique_ptr<OutputQueue> stdout_;
  std::unique_ptr<OutputQueue> stderr_;   // null where standard error is the same file
  std::unique_ptr<RankConsole> console_;  // may be null
  std::deque<Stream> streams_;
  std::optional<OutputQueue::Clock::time_point> ending_since_;
  bool expects_nothing_ = false;
  bool is_closed_ = false;
};

}  // namespace launcher
