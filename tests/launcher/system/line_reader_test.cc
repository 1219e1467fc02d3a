// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/line_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

namespace launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LineReaderTest : public testing::Test {
 protected:
  LineReaderTest() {
    std::array<int, 2> in = {};
    EXPECT_EQ(pipe2(in.data(), O_NONBLOCK), 0);
    EXPECT_GT(fcntl(in[1], F_SETPIPE_SZ, 1 << 20), 0);
    from_ = support::Descriptor(in[0]);
    writer_ = support::Descriptor(in[1]);
  }

  LineReader Make(LineReader::Unit unit = LineReader::Unit::kLines) {
    return {std::move(from_), unit, [this](std::string_view text) { texts_.emplace_back(text); }};
  }

  void Send(const std::string& text) {
    ASSERT_EQ(write(writer_.fd(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  support::Descriptor from_, writer_;
  std::vector<std::string> texts_;
};

TEST_F(LineReaderTest, KeepsALineBackUntilItIsWhole) {
  LineReader reader = Make();
  Send("one\ntw");
  EXPECT_TRUE(reader.Read());
  EXPECT_THAT(texts_, ElementsAre("one\n"));
  Send("o\n");
  EXPECT_TRUE(reader.Read());
  EXPECT_THAT(texts_, ElementsAre("one\n", "two\n"));
  EXPECT_FALSE(reader.Read());
}

TEST_F(LineReaderTest, GivesALastLineWithoutAnEnd) {
  LineReader reader = Make();
  Send("a\n\nno end");
  writer_.Close();
  EXPECT_TRUE(reader.Read());
  EXPECT_FALSE(reader.is_open());
  EXPECT_THAT(texts_, ElementsAre("a\n", "\n", "no end"));
}

TEST_F(LineReaderTest, ShowsAProgressBarMoving) {
  LineReader reader = Make();
  Send("10%\r20%\r3");
  EXPECT_TRUE(reader.Read());
  EXPECT_THAT(texts_, ElementsAre("10%\r", "20%\r"));
}

TEST_F(LineReaderTest, GivesChunksAtOnce) {
  LineReader reader = Make(LineReader::Unit::kChunks);
  Send("password: ");
  EXPECT_TRUE(reader.Read());
  EXPECT_THAT(texts_, ElementsAre("password: "));
}

TEST_F(LineReaderTest, GivesAnEndlessLineInParts) {
  LineReader reader = Make();
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(texts_, IsEmpty());
    Send(std::string(16384, 'x'));
    EXPECT_TRUE(reader.Read());
  }
  ASSERT_EQ(texts_.size(), 1U);
  EXPECT_GT(texts_[0].size(), kMaxLineBytes);
}

TEST_F(LineReaderTest, ComesBackFromAPipeThatIsNeverEmpty) {
  LineReader reader = Make();
  Send(std::string(kMaxLineBytes * 4, '\n'));
  EXPECT_TRUE(reader.Read());
  EXPECT_EQ(texts_.size(), kMaxLineBytes);
}

TEST_F(LineReaderTest, ComesToTheEndOfAPipeInWhichSomebodyWritesForEver) {
  LineReader reader = Make();
  reader.ReadNoMoreThanThePipeHolds();
  const std::string part(1 << 16, '\n');
  for (int i = 0; i < 16; ++i) {
    Send(part);
    EXPECT_TRUE(reader.Read());
    EXPECT_TRUE(reader.is_open());
  }
  Send("too late");
  EXPECT_TRUE(reader.Read());
  EXPECT_FALSE(reader.is_open());
  EXPECT_EQ(texts_.size(), std::size_t{1} << 20);
}

TEST(WithoutEnd, TakesOneEndAway) {
  EXPECT_EQ(WithoutEnd("a\n"), "a");
  EXPECT_EQ(WithoutEnd("a\r"), "a");
  EXPECT_EQ(WithoutEnd("\n"), "");
  EXPECT_EQ(WithoutEnd("a"), "a");
}

}  // namespace
}  // namespace launcher
