// SPDX-License-Identifier: Apache-2.0

#include "bench/run_log/log_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LogLinesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "log";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }

  void Append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  // (text, number, is_whole, is_cut) of each line.
  using Read = std::tuple<std::string, std::int64_t, bool, bool>;
  std::vector<Read> ReadAll() {
    std::vector<Read> all;
    LogLines lines(path_);
    for (LogLine line; lines.Next(line);) {
      all.emplace_back(line.text, line.number, line.is_whole, line.is_cut);
    }
    return all;
  }

  int RefusalCode() {
    try {
      ReadAll();
    } catch (const trainer::Error& error) {
      message_ = error.what();
      return error.exit_code();
    }
    return 0;
  }

  std::filesystem::path folder_;
  std::filesystem::path path_;
  std::string message_;
};

TEST_F(LogLinesTest, NumbersLinesAndTellsTheTornOne) {
  Write("one\n\nthree");
  EXPECT_THAT(ReadAll(), ElementsAre(Read("one", 1, true, false), Read("", 2, true, false),
                                     Read("three", 3, false, false)));
}

TEST_F(LogLinesTest, AnEmptyFileHasNoLine) {
  Write("");
  EXPECT_THAT(ReadAll(), ElementsAre());
}

TEST_F(LogLinesTest, BytesStayAsTheyAre) {
  Write(std::string("\xff\0\r\n", 4));
  EXPECT_THAT(ReadAll(), ElementsAre(Read(std::string("\xff\0\r", 3), 1, true, false)));
}

// A line may lie on both sides of a read, and fill it.
TEST_F(LogLinesTest, LinesOfEveryLengthComeWhole) {
  std::string text;
  std::vector<Read> expected;
  std::int64_t number = 0;
  for (const std::size_t length :
       {kMaxLineBytes - 1, kMaxLineBytes, kMaxLineBytes, std::size_t{1}, kMaxLineBytes - 7,
        kMaxLineBytes, kMaxLineBytes - 2, std::size_t{0}, kMaxLineBytes}) {
    const std::string line(length, static_cast<char>('a' + number));
    text += line + "\n";
    expected.emplace_back(line, ++number, true, false);
  }
  Write(text);
  EXPECT_EQ(ReadAll(), expected);
}

TEST_F(LogLinesTest, ALongLineIsCutAndTheNextOneIsRight) {
  Write(std::string(kMaxLineBytes + 1, 'x') + "\n" + std::string(5 * kMaxLineBytes, 'y') + "\nz\n");
  const std::vector<Read> all = ReadAll();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0], Read(std::string(kMaxLineBytes, 'x'), 1, true, true));
  EXPECT_EQ(all[1], Read(std::string(kMaxLineBytes, 'y'), 2, true, true));
  EXPECT_EQ(all[2], Read("z", 3, true, false));
}

TEST_F(LogLinesTest, AGrowingFileHasWholeLinesAlone) {
  Write("one\ntw");
  LogLines lines(path_, /*is_growing=*/true);
  LogLine line;
  ASSERT_TRUE(lines.Next(line));
  EXPECT_EQ(line.text, "one");
  EXPECT_FALSE(lines.Next(line));
  EXPECT_FALSE(lines.Next(line));
  Append("o");
  EXPECT_FALSE(lines.Next(line));
  Append("\n" + std::string(kMaxLineBytes, 'x'));
  ASSERT_TRUE(lines.Next(line));
  EXPECT_EQ(line.text, "two");
  EXPECT_EQ(line.number, 2);
  EXPECT_FALSE(line.is_cut);
  EXPECT_FALSE(lines.Next(line));
  Append("x\n4\n");
  ASSERT_TRUE(lines.Next(line));
  EXPECT_TRUE(line.is_whole);
  EXPECT_TRUE(line.is_cut);
  EXPECT_EQ(line.text.size(), kMaxLineBytes);
  ASSERT_TRUE(lines.Next(line));
  EXPECT_EQ(line.text, "4");
  EXPECT_FALSE(line.is_cut);
}

// 600 MB of one line, without 600 MB of disk.
TEST_F(LogLinesTest, MemoryDoesNotGrowWithTheFile) {
  constexpr std::uintmax_t kBytes = 600'000'000;
  Write("first\n");
  std::filesystem::resize_file(path_, kBytes);
  struct rusage before {};
  ::getrusage(RUSAGE_SELF, &before);
  LogLines lines(path_);
  LogLine line;
  ASSERT_TRUE(lines.Next(line));
  ASSERT_TRUE(lines.Next(line));
  EXPECT_TRUE(line.is_cut);
  EXPECT_FALSE(line.is_whole);
  EXPECT_FALSE(lines.Next(line));
  struct rusage after {};
  ::getrusage(RUSAGE_SELF, &after);
  constexpr long kKilobytes = 8 * 1024;
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, kKilobytes);
}

TEST_F(LogLinesTest, RefusesWhatIsNoFileByName) {
  EXPECT_EQ(RefusalCode(), EX_NOINPUT);
  EXPECT_THAT(message_, HasSubstr(path_.string() + ": cannot be read: No such file"));
  std::filesystem::create_directory(path_);
  EXPECT_EQ(RefusalCode(), EX_NOINPUT);
  EXPECT_THAT(message_, HasSubstr("it is no regular file"));
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(RefusalCode(), EX_NOINPUT);
}

TEST(IsUtf8, KnowsWhatPythonDecodes) {
  for (const std::string good :
       {"", "abc", "\u00e9", "\u20ac", "\U0001F600", "\uFFFD", "\U0010FFFF", "\x7f", "\u0080",
        "\u07ff", "\u0800", "\ud7ff", "\ue000"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  EXPECT_TRUE(IsUtf8(std::string(1, '\0')));
  for (const std::string bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80", "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xe2\x82", "\xe2\x82(", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf0\x9f\x98", "\xf0\x9f(\x80", "\xff",
        "a\xe9z"}) {
    EXPECT_FALSE(IsUtf8(bad)) << ::testing::PrintToString(bad);
  }
}

}  // namespace
}  // namespace bench
