// SPDX-License-Identifier: Apache-2.0

#include "support/json.h"

#include <unistd.h>

#include <fstream>
#include <limits>

#include "support/append_file.h"
#include "support/file.h"
#include "support/quoting.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace support {
namespace {

TEST(ParseJson, RefusesWhatIsOverItsLimits) {
  constexpr JsonLimits kLimits = {.bytes = 40, .depth = 2, .values = 4};
  const struct {
    const char* text;
    const char* over;
  } cases[] = {{"[[1]]", ""},
               {"[[],[],[]]", ""},
               {"{\"a\":{\"b\":1}}", ""},
               {"[[[1]]]", "nested deeper than 2 levels"},
               {"{\"a\":[{}]}", "nested deeper than 2 levels"},
               {"[\"[[[[[{{{{\"]", ""},
               {"[\"\\\"[[[[[\"]", ""},
               {"[\"\\\\\",[[1]]]", "nested deeper than 2 levels"},
               {"]]]][[", ""},
               {"[1,2,3,4]", ""},
               {"[1,2,3,4,5]", "of more than 4 values"},
               {"[\",,,,,,,\"]", ""},
               {"1234567890123456789012345678901234567890", ""},
               {"12345678901234567890123456789012345678901", "longer than 40 bytes"}};
  for (const auto& [text, over] : cases) {
    EXPECT_EQ(JsonOverLimit(text, kLimits), over) << text;
    EXPECT_TRUE(*over == '\0' || ParseJson<>(text, kLimits).is_discarded()) << text;
  }
  EXPECT_EQ(ParseJson<>("[[1]]", kLimits)[0][0], 1);
  EXPECT_TRUE(ParseJson<>("[1", kLimits).is_discarded());
  const std::string deep = std::string(10'000'000, '[');
  EXPECT_TRUE(ParseJson<>(deep, {.bytes = deep.size(), .depth = 8, .values = 9}).is_discarded());
}

TEST(IntegerOf, TakesWholeNumbersWithinTheirRangeAlone) {
  const auto in = [](const char* text, int min, int max) {
    return IntegerOf<int>(nlohmann::json::parse(text), min, max);
  };
  EXPECT_EQ(in("5", 0, 10), 5);
  EXPECT_EQ(in("0", 0, 10), 0);
  EXPECT_EQ(in("10", 0, 10), 10);
  EXPECT_EQ(in("-3", -3, 10), -3);
  for (const char* text :
       {"-1", "11", "1e100", "5.0", "2222222222222222222222222222222222222222222222222222222",
        "-9223372036854775808", "18446744073709551615", "4294967301", "\"5\"", "null", "true",
        "[5]"}) {
    EXPECT_EQ(in(text, 0, 10), std::nullopt) << text;
  }
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(IntegerOf<std::uint64_t>(nlohmann::json(kMax), 0, kMax), kMax);
  EXPECT_EQ(IntegerOf<std::uint64_t>(nlohmann::json(-1), 0, kMax), std::nullopt);
  EXPECT_EQ(
      IntegerOf<std::int64_t>(nlohmann::json(kMax), 0, std::numeric_limits<std::int64_t>::max()),
      std::nullopt);
}

TEST(WithoutControls, ShowsWhatWouldMoveACursorOrForgeALine) {
  const struct {
    std::string_view text, shown;
  } cases[] = {
      {"plain\ttext", "plain\ttext"},
      {"\x1b]0;PWN\a", "\\x1b]0;PWN\\x07"},
      {"j\nddlrun: forged\n", "j\\x0addlrun: forged\n"},
      {"a\r", "a\\x0d"},
      {"\x7f", "\\x7f"},
      {"\xc2\x9b"
       "2J",
       "\\x9b2J"},
      {"\xe2\x80\xaegpj", "\\u202egpj"},
      {"\xe2\x81\xa6", "\\u2066"},
      {"\xe2\x80\xa8", "\\u2028"},
      {"\xef\xbb\xbf", "\\ufeff"},
      {"B\xc3\xa4r \xe7\x8a\xac \xf0\x9f\x90\x95", "B\xc3\xa4r \xe7\x8a\xac \xf0\x9f\x90\x95"},
      {"\xe4 latin", "\\xe4 latin"},
      {"\xc0\x9b", "\\xc0\\x9b"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
      {"\xe2\x80", "\\xe2\\x80"},
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}};
  for (const auto& [text, shown] : cases) EXPECT_EQ(WithoutControls(text), shown);
  EXPECT_EQ(WithoutControls("a\nb\x1b\n", /*keeps_lines=*/true), "a\nb\\x1b\n");
}

TEST(OpenToAppend, RefusesWhatIsNoFileOfThisUser) {
  const tests::TemporaryDirectory directory;
  const auto in = [&](const char* name) { return (directory.path() / name).string(); };
  const auto error_of = [](const std::string& path, OwnLinks links = OwnLinks::kReject) {
    const Descriptor file(OpenToAppend(path.c_str(), 0666, links));
    return file.is_open() ? 0 : errno;
  };
  EXPECT_EQ(error_of(in("new")), 0);
  EXPECT_EQ(error_of(in("new")), 0);
  std::filesystem::create_symlink(in("victim"), in("link"));
  EXPECT_EQ(error_of(in("link")), ELOOP);
  EXPECT_FALSE(std::filesystem::exists(in("victim")));
  for (const mode_t mode : {0777, 01777, 0775}) {
    ASSERT_EQ(::chmod(directory.path().c_str(), mode), 0);
    EXPECT_EQ(error_of(in("link"), OwnLinks::kFollow), ELOOP) << std::oct << mode;
  }
  EXPECT_FALSE(std::filesystem::exists(in("victim")));
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  EXPECT_EQ(error_of(in("link"), OwnLinks::kFollow), 0);
  EXPECT_TRUE(std::filesystem::exists(in("victim")));
  EXPECT_EQ(error_of("/dev/stdout", OwnLinks::kFollow), 0);
  ASSERT_EQ(::mkfifo(in("fifo").c_str(), 0666), 0);
  EXPECT_EQ(error_of(in("fifo")), EMEDIUMTYPE);
  const Descriptor reader(::open(in("fifo").c_str(), O_RDONLY | O_NONBLOCK));
  EXPECT_EQ(error_of(in("fifo")), EMEDIUMTYPE);
  EXPECT_EQ(error_of("/dev/null"), 0);
  for (const int error : {ELOOP, EMEDIUMTYPE, EOWNERDEAD})
    EXPECT_NE(ReasonNotToAppend(error), nullptr);
  EXPECT_EQ(ReasonNotToAppend(ENOSPC), nullptr);
  if (::geteuid() != 0) GTEST_SKIP() << "another user's file is made by root alone";
  std::ofstream(in("other")) << "x";
  ASSERT_EQ(::chown(in("other").c_str(), 12345, 12345), 0);
  EXPECT_EQ(error_of(in("other")), EOWNERDEAD);
  ASSERT_EQ(::chown(directory.path().c_str(), 12345, 12345), 0);
  EXPECT_EQ(error_of(in("link"), OwnLinks::kFollow), ELOOP);
}

TEST(AtomicFile, NeverWritesToAFileThatIsThere) {
  const tests::TemporaryDirectory directory;
  const std::filesystem::path hidden = directory.path() / ".file.tmp";
  std::ofstream(hidden) << "of another";
  std::filesystem::create_hard_link(hidden, directory.path() / "kept");
  EXPECT_EQ(ReplaceFile(directory.path() / "file", "text"), 0);
  std::string kept;
  std::getline(std::ifstream(directory.path() / "kept") >> std::ws, kept);
  EXPECT_EQ(kept, "of another");
  // Where it cannot be removed another name is taken.
  std::filesystem::create_directory(hidden);
  EXPECT_EQ(ReplaceFile(directory.path() / "file", "more"), 0);
  EXPECT_FALSE(std::filesystem::exists(hidden.string() + "-" + std::to_string(::getpid())));
}

}  // namespace
}  // namespace support
