// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/rank_console.h"

#include <random>

#include "tests/support/test.h"

namespace launcher {
namespace {

using Time = RankConsole::Clock::time_point;

// A console of six ranks on two hosts, three each.  The time is in milliseconds.
class Console {
 public:
  explicit Console(FoldOutput fold, const std::string& format = "", int shown = 6)
      : console_({.tag_format = format,
                  .fold = fold,
                  .shown_ranks = shown,
                  .hosts = {"n1", "n1", "n1", "n2", "n2", "n2"},
                  .local_ranks = {0, 1, 2, 0, 1, 2},
                  .time_of_day = [this] { return std::to_string(now_); }},
                 [this](int stream, std::string_view text) {
                   seen_ += stream == 2 ? "!" : "";
                   seen_ += text;
                 }) {}

  Console& Add(int rank, const std::string& text, int stream = 1) {
    console_.Add(rank, stream, text, At(now_));
    return *this;
  }
  Console& AddAll(const std::string& text) {
    for (int rank = 0; rank < 6; ++rank) Add(rank, text);
    return *this;
  }
  Console& Pass(int ms) {
    now_ += ms;
    console_.Advance(At(now_));
    return *this;
  }
  std::string Seen() { return std::exchange(seen_, ""); }
  std::string End() {
    console_.End();
    return Seen();
  }
  std::optional<int> Deadline() const {
    const auto time = console_.deadline();
    if (!time) return std::nullopt;
    return static_cast<int>(
        std::chrono::duration_cast<std::chrono::milliseconds>(time->time_since_epoch()).count());
  }

 private:
  static Time At(int ms) { return Time(std::chrono::milliseconds(ms)); }

  int now_ = 0;
  std::string seen_;
  RankConsole console_;
};

TEST(RankRanges, AreShortAndOfManyTheFirst) {
  const struct {
    std::vector<int> ranks;
    std::string text;
  } kCases[] = {
      {{3}, "3"},
      {{2, 0, 1}, "0-2"},
      {{0, 1, 3, 5, 6}, "0-1,3,5-6"},
      {{0, 2, 4, 6, 8, 10, 12, 14}, "0,2,4,6,8,10,12,14"},
      {{0, 2, 4, 6, 8, 10, 12, 14, 16}, "0,2,4,6,8,10,12,14,... (9 ranks)"},
  };
  for (const auto& [ranks, text] : kCases) EXPECT_EQ(RankRanges(ranks), text);
}

TEST(RankConsole, PutsATagInFrontOfEachLine) {
  const struct {
    std::string format, seen;
  } kCases[] = {
      {"[%r] ", "[4] a\n"},
      {"%t %r/%l@%h: ", "7 4/1@n2: a\n"},
      {"100%%r|", "100%r|a\n"},
      {"x", "xa\n"},
  };
  for (const auto& [format, seen] : kCases) {
    Console console(FoldOutput::kNone, format);
    EXPECT_EQ(console.Pass(7).Add(4, "a\n").Seen(), seen);
    EXPECT_FALSE(console.Deadline());
  }
}

TEST(RankConsole, JoinsThePartsOfALineAndShowsAProgressBarAtOnce) {
  Console console(FoldOutput::kNone, "[%r] ");
  EXPECT_EQ(console.Add(0, "a").Add(1, "b").Add(0, "c", 2).Seen(), "");
  EXPECT_EQ(console.Add(0, "1\n").Add(1, "2\n").Add(0, "3\n", 2).Seen(),
            "[0] a1\n[1] b2\n![0] c3\n");
  EXPECT_EQ(console.Add(0, "10%\r").Add(0, "20%\r").Add(0, "\n").Seen(),
            "[0] 10%\r[0] 20%\r[0] \n");
  // The beginning of a line that does not end is seen once it is long, with one tag.
  const std::string half(RankConsole::kMaxBeginning / 2, 'x');
  EXPECT_EQ(console.Add(0, half).Seen(), "");
  EXPECT_EQ(console.Add(0, half).Seen(), "[0] " + half + half);
  EXPECT_EQ(console.Add(0, "y").Seen(), "");
  EXPECT_EQ(console.Add(0, "\n").Seen(), "y\n");
  EXPECT_EQ(console.Add(0, "end").End(), "[0] end\n");
}

TEST(RankConsole, FoldsWhatSeveralRanksPrint) {
  Console console(FoldOutput::kEqual);
  EXPECT_EQ(console.AddAll("loading\n").Seen(), "[0-5] loading\n");  // at once
  EXPECT_EQ(console.Add(0, "a\n").Add(2, "a\n").Pass(999).Seen(), "");
  EXPECT_EQ(console.Deadline(), 1000);
  EXPECT_EQ(console.Pass(1).Seen(), "[0,2] a\n");
  EXPECT_FALSE(console.Deadline());
  // One of standard error is another line.
  EXPECT_EQ(console.Add(0, "a\n").Add(1, "a\n", 2).End(), "[0] a\n![1] a\n");
  EXPECT_EQ(console.AddAll("\n").Seen(), "[0-5] \n");
  EXPECT_EQ(console.AddAll("\x1b[1mgr\xc3\xbcn\x1b[m\tx\n").Seen(),
            "[0-5] \x1b[1mgr\xc3\xbcn\x1b[m\tx\n");
  // Lines that differ do not keep others from being folded, and stay together.
  for (int rank = 0; rank < 6; ++rank) {
    console.Add(rank, "rank " + std::to_string(rank) + "\n").Add(rank, "all\n").Add(rank, "b\n", 2);
    if (rank == 3) console.Add(3, "and\n");
  }
  EXPECT_EQ(console.End(),
            "![0-5] b\n[0] rank 0\n[1] rank 1\n[2] rank 2\n[3] rank 3\n[4] rank 4\n[5] rank 5\n"
            "[0-5] all\n[3] and\n");
  // A complete line does not overtake an earlier one of another rank.
  console.Add(0, "only\n").AddAll("all\n");
  EXPECT_EQ(console.Seen(), "");
  EXPECT_EQ(console.Pass(1000).Seen(), "[0] only\n[0-5] all\n");
}

TEST(RankConsole, FoldsForTheRanksThatAreShownAndByAnyFormat) {
  EXPECT_EQ(Console(FoldOutput::kEqual, "", 2).Add(0, "a\n").Add(3, "a\n").Seen(), "[0,3] a\n");
  Console console(FoldOutput::kEqual, "%t %r %l %h|", 3);
  console.Add(3, "a\n").Pass(5);
  EXPECT_EQ(console.Add(4, "a\n").Add(5, "a\n").Seen(), "0 3-5 0-2 n2|a\n");
  EXPECT_EQ(console.Add(0, "a\n").Add(3, "a\n").Add(4, "a\n").Seen(), "5 0,3-4 0-1 2 hosts|a\n");
}

TEST(RankConsole, NeverChangesTheOrderOfARank) {
  Console console(FoldOutput::kEqual);
  // Rank 1 prints the two lines the other way round, rank 0 one of them twice.
  console.Add(0, "a\n").Add(0, "b\n").Add(1, "b\n").Add(1, "a\n").Add(0, "a\n").Add(0, "a\n");
  EXPECT_EQ(console.End(), "[0] a\n[0-1] b\n[0-1] a\n[0] a\n");
}

TEST(RankConsole, LetsWhatIsNoPlainLineWaitForNobody) {
  const std::string long_line(RankConsole::kMaxFoldedBytes, 'x');
  EXPECT_EQ(Console(FoldOutput::kEqual).AddAll(long_line + "\n").Seen(),
            "[0-5] " + long_line + "\n");
  for (const std::string& text : {std::string("10%\r"), std::string("a\0b\n", 4),
                                  std::string("a\x01\n"), long_line + "y\n"}) {
    Console console(FoldOutput::kEqual);
    console.Add(0, "first\n").Add(1, "first\n").Add(1, "second\n");
    // What rank 0 has printed before is seen first, what rank 1 has printed since waits.
    EXPECT_EQ(console.Add(0, text).Seen(), "[0-1] first\n[0] " + text);
    EXPECT_EQ(console.Add(5, text).Seen(), "[5] " + text);
    EXPECT_EQ(console.End(), "[1] second\n");
  }
}

TEST(RankConsole, FoldsLinesThatDifferInNumbers) {
  const struct {
    std::string first, second, seen;
  } kCases[] = {
      {"step 1 loss 2.50", "step 1 loss 2.25", "[0-1] step 1 loss 2.25..2.50\n"},
      {"step 9", "step 10", "[0-1] step 9..10\n"},
      {"lr 1e-05, x=-0.5", "lr 2E-06, x=0.25", "[0-1] lr 2E-06..1e-05, x=-0.5..0.25\n"},
      {"rank-1 of 4.", "rank-0 of 4.", "[0-1] rank-0..1 of 4.\n"},
      {"3 1", "1 3", "[0-1] 1..3 1..3\n"},
      {"a1", "a1", "[0-1] a1\n"},
      {"a1", "b1", "[1] b1\n[0] a1\n"},
      {"a 1", "a", "[1] a\n[0] a 1\n"},
      {"a 1", "a 1 2", "[1] a 1 2\n[0] a 1\n"},
      {"0x1f", "0x1e", "[1] 0x1e\n[0] 0x1f\n"},
  };
  for (const auto& [first, second, seen] : kCases) {
    Console console(FoldOutput::kNumbers);
    EXPECT_EQ(console.Add(0, first + "\n").Add(1, second + "\n").End(), seen);
    if (seen.starts_with("[1]") || first == second) continue;
    Console equal(FoldOutput::kEqual);
    equal.Add(0, first + "\n").Add(1, second + "\n");
    EXPECT_EQ(equal.End(), "[0] " + first + "\n[1] " + second + "\n");
  }
}

TEST(RankConsole, HoldsNoMoreThanItMay) {
  Console console(FoldOutput::kEqual);
  std::size_t held = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string seen = console.Add(i % 6, std::to_string(i) + "\n").Seen();
    held += 1 - static_cast<std::size_t>(std::ranges::count(seen, '\n'));
    EXPECT_LE(held, RankConsole::kMaxLines);
  }
  EXPECT_EQ(held, RankConsole::kMaxLines);
}

// Whatever the ranks print and when: each line of each rank is seen once, in its order, in time.
TEST(RankConsole, LosesNothing) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same each time
  for (int round = 0; round < 200; ++round) {
    Console console(FoldOutput::kEqual, "%r|");
    std::vector<std::string> printed(6), seen(6);
    std::string text;
    int now = 0;
    for (int i = 0; i < 60; ++i) {
      const int rank = static_cast<int>(random() % 6);
      const std::string line(1, static_cast<char>('a' + random() % 3));
      const std::string end = random() % 20 == 0 ? "\x02\n" : "\n";
      printed[static_cast<std::size_t>(rank)] += line;
      console.Add(rank, line + end);
      const int pause = static_cast<int>(random() % 100);
      now += pause;
      console.Pass(pause);
      EXPECT_GT(console.Deadline().value_or(now + 1), now);
      text += console.Seen();
    }
    text += console.End();
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream ranges(line.substr(0, line.find('|')));
      for (std::string range; std::getline(ranges, range, ',');) {
        const int first = std::stoi(range);
        const std::size_t dash = range.find('-');
        const int last = dash == std::string::npos ? first : std::stoi(range.substr(dash + 1));
        for (int rank = first; rank <= last; ++rank) {
          seen[static_cast<std::size_t>(rank)] += line[line.find('|') + 1];
        }
      }
    }
    EXPECT_EQ(seen, printed);
  }
}

}  // namespace
}  // namespace launcher
