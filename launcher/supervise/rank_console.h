// SPDX-License-Identifier: Apache-2.0
//
// What ranks print, as the user sees it with --tag-output and --fold-output: a tag in front of each
// line, and equal lines of several ranks as one.  Pure: the time is told.  For one thread.

#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace launcher {

enum class FoldOutput { kNone, kEqual, kNumbers };

struct ConsoleOptions {
  // In front of each line: %r the rank, %l its local rank, %h its host, %t the time, %% a '%'; "":
  // nothing, or of folded lines "[%r] ".
  std::string tag_format;
  FoldOutput fold = FoldOutput::kNone;
  // How many ranks print: a line of all of them waits for no other.
  int shown_ranks = 0;
  std::vector<std::string> hosts;  // of each rank
  std::vector<int> local_ranks;    // of each rank
  // The time of %t; of tests another one.
  std::function<std::string()> time_of_day = nullptr;

  bool IsOn() const { return !tag_format.empty() || fold != FoldOutput::kNone; }
};

// "0-3,7"; of more than eight ranges the first eight, and how many ranks there are.  `ranks` in any
// order, each once.
std::string RankRanges(std::vector<int> ranks);

// A rank's own lines on a stream never change their order: it joins a line only behind the last
// that it has joined, and one that nobody else has printed comes right behind that, so that the
// rank can still join all others.  A line waits for the same one of other ranks until all have
// printed it, kMaxWait at most.  What is no plain line of text (a longer one than kMaxFoldedBytes,
// control characters, the '\r' of a progress bar) waits for nobody; what the rank has printed
// before is shown first.
class RankConsole {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::milliseconds kMaxWait{1000};
  static constexpr std::size_t kMaxFoldedBytes = 2000;
  // So many lines of a stream wait, of so many ranks in all: then the first is shown.
  static constexpr std::size_t kMaxLines = 1000;
  static constexpr std::size_t kMaxRanks = 1'000'000;
  // Of the beginning of a line: then it is shown without its end.
  static constexpr std::size_t kMaxBeginning = std::size_t{64} << 10;

  // `write` gets what is to be seen on stream 1 or 2.
  RankConsole(ConsoleOptions options, std::function<void(int stream, std::string_view text)> write);

  // What a rank has printed: a line with its end ('\n' or '\r'), or a part of one that has no end
  // so far.
  void Add(int rank, int stream, std::string_view text, Clock::time_point now);
  // Shows the lines that have waited long enough.
  void Advance(Clock::time_point now);
  // When Advance is to be called; nullopt: no line waits.
  std::optional<Clock::time_point> deadline() const;
  // Shows the lines that wait.
  void Flush();
  // The same, and beginnings of lines.
  void End();

 private:
  struct Number {
    std::string min, max;
  };
  struct Group {
    std::string key;    // of lines that are folded into it
    std::string shape;  // of lines that differ in their numbers alone
    std::string text;   // of the first rank, without its end
    std::string time;
    std::vector<Number> numbers;
    std::vector<int> ranks;
    Clock::time_point since;
  };
  struct Stream {
    std::list<Group> groups;
    std::vector<std::list<Group>::iterator> last;  // by rank: what it has joined last, or the end
    std::size_t ranks = 0;                         // in all groups
  };
  struct Beginning {
    std::string text;
    bool is_shown = false;  // the very beginning already is
  };

  void AddLine(int rank, int stream, std::string_view text, Clock::time_point now);
  void Fold(int rank, int stream, std::string_view text, Clock::time_point now);
  Stream& Of(int stream) { return streams_.at(static_cast<std::size_t>(stream) - 1); }
  void ShowFirst(int stream);
  void ShowAllOf(int rank, int stream);
  std::string Tag(const std::vector<int>& ranks, const std::string& time) const;
  std::string TimeNow() const;

  const ConsoleOptions options_;
  const std::function<void(int, std::string_view)> write_;
  std::map<std::pair<int, int>, Beginning> beginnings_;  // by rank and stream
  std::array<Stream, 2> streams_;
};

}  // namespace launcher
