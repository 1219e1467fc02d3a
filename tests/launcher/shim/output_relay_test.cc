// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/output_relay.h"

#include <fcntl.h>
#include <unistd.h>

#include "tests/support/test.h"

namespace launcher {
namespace {

using ::testing::ElementsAre;

void Add(const std::string& text, StreamTail* tail) { tail->Add(text.data(), text.size()); }

std::vector<std::string> LinesOf(const StreamTail& tail) {
  std::vector<std::string> lines;
  for (int i = 0; i < tail.size(); ++i) lines.emplace_back(tail.line(i));
  return lines;
}

TEST(ShimTail, PutsLinesTogetherFromPiecesAndPassesEmptyOnesOver) {
  StreamTail tail;
  Add("a\n\nb", &tail);
  Add("c\rd", &tail);
  EXPECT_THAT(LinesOf(tail), ElementsAre("a", "bc"));
  tail.End();
  tail.End();
  EXPECT_THAT(LinesOf(tail), ElementsAre("a", "bc", "d"));
}

TEST(ShimTail, KeepsTheLastTenLinesAndTheStartOfLongOnes) {
  StreamTail tail;
  for (int i = 0; i < 25; ++i) Add(std::to_string(i) + "\n", &tail);
  Add(std::string(5000, 'x') + "\n", &tail);
  ASSERT_EQ(LinesOf(tail).size(), 10U);
  EXPECT_EQ(LinesOf(tail).front(), "16");
  EXPECT_EQ(LinesOf(tail).back(), std::string(kReportedLineBytes, 'x'));
}

constexpr char kMark[] = "ddlrun-rank[key]: output: ";

// What is written of a text that comes in `pieces`.
std::string Marked(const std::vector<std::string>& pieces, const char* key = "key") {
  static OutputMarks marks;
  marks = OutputMarks();
  marks.SetKey(key);
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe(ends), 0);
  std::string written;
  for (const std::string& piece : pieces) marks.Write(ends[1], piece.data(), piece.size());
  close(ends[1]);
  char chunk[4096];
  for (ssize_t got = 0; (got = read(ends[0], chunk, sizeof(chunk))) > 0;) {
    written.append(chunk, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  return written;
}

TEST(OutputMarks, AreInFrontOfWhatCouldBeALineOfTheLauncher) {
  const std::string mark = kMark;
  const struct {
    std::vector<std::string> pieces;
    std::string written;
  } kCases[] = {
      {{"step 1\nsteps\n"}, "step 1\nsteps\n"},
      {{"srun: error: n1: task 0: Killed\n"}, mark + "srun: error: n1: task 0: Killed\n"},
      {{"a\nsrun: x\nb\rslurmstepd: y\n\n"},
       "a\n" + mark + "srun: x\nb\r" + mark + "slurmstepd: y\n\n"},
      {{"srun: x\nsrun: y\n"}, mark + "srun: x\n" + mark + "srun: y\n"},
      {{"a srun: x\n", "b", "srun: y\n"}, "a srun: x\nbsrun: y\n"},
      {{"sr", "un: x\n"}, mark + "srun: x\n"},
      {{"s", "tep\n", "s"}, mark + "step\n" + mark + "s"},
      {{"  Remote daemon: [x] on node n1\n"}, mark + "  Remote daemon: [x] on node n1\n"},
      {{"ddlrun-rank: [ERROR DDL-20-78] x\n"}, mark + "ddlrun-rank: [ERROR DDL-20-78] x\n"},
      {{"", "\n", ""}, "\n"},
  };
  for (const auto& [pieces, written] : kCases) {
    EXPECT_EQ(Marked(pieces), written);
    std::string text;
    for (const std::string& piece : pieces) text += piece;
    EXPECT_EQ(Marked(pieces, ""), text);
  }
}

TEST(OutputMarks, FitInFrontOfTheLargestPiece) {
  const std::string line = "srun: " + std::string(OutputMarks::kMaxBytes - 6, 'x');
  EXPECT_EQ(Marked({line}, "0123456789abcdef"), "ddlrun-rank[0123456789abcdef]: output: " + line);
}

// What is written after each of `pieces`, and at the end.
std::vector<std::string> WrittenOf(const std::vector<std::string>& pieces) {
  static WholeLines lines;
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_NONBLOCK), 0);
  std::vector<std::string> written;
  const auto read_all = [&] {
    std::string text;
    char chunk[4096];
    for (ssize_t got = 0; (got = read(ends[0], chunk, sizeof(chunk))) > 0;) {
      text.append(chunk, static_cast<std::size_t>(got));
    }
    written.push_back(text);
  };
  for (const std::string& piece : pieces) {
    lines.Write(ends[1], piece.data(), piece.size());
    read_all();
  }
  lines.Flush(ends[1]);
  EXPECT_FALSE(lines.is_holding());
  read_all();
  close(ends[0]);
  close(ends[1]);
  return written;
}

TEST(WholeLines, HoldTheBeginningOfALineUntilItsEndHasCome) {
  const std::string most(WholeLines::kMaxPiece, 'x');
  const struct {
    std::vector<std::string> pieces;
    std::vector<std::string> written;
  } kCases[] = {
      {{}, {""}},
      {{"a\n"}, {"a\n", ""}},
      {{"a", " ", "b", "\n"}, {"", "", "", "a b\n", ""}},
      {{"a\nb", "c\nd"}, {"a\n", "bc\n", "d"}},
      {{"10%\r2", "0%\r"}, {"10%\r", "20%\r", ""}},
      {{"", "\n"}, {"", "\n", ""}},
      {{most, "\n"}, {"", most + "\n", ""}},
      {{most, "y", "z\n"}, {"", most + "y", "z\n", ""}},  // longer than what is held
      {{"a\n" + most.substr(2), most}, {"a\n", most.substr(2) + most, ""}},
      {{most.substr(1) + "\n", most}, {most.substr(1) + "\n", "", most}},
  };
  for (const auto& [pieces, written] : kCases) EXPECT_EQ(WrittenOf(pieces), written);
}

}  // namespace
}  // namespace launcher
