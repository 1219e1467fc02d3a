// SPDX-License-Identifier: Apache-2.0

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <thread>

#include "support/cpu_quota.h"
#include "support/file.h"
#include "support/format_version.h"
#include "support/memory_kills.h"
#include "support/number.h"
#include "support/quoting.h"
#include "support/spelling.h"
#include "tests/support/temporary_directory.h"

namespace support {
namespace {

TEST(Counted, KnowsSingularAndPlural) {
  EXPECT_EQ(Counted(0, "rank"), "0 ranks");
  EXPECT_EQ(Counted(1, "rank"), "1 rank");
  EXPECT_EQ(Counted(16, "GPU"), "16 GPUs");
}

class FileTest : public tests::DirectoryTest {
 protected:
  std::size_t CountFiles() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }
};

using DescriptorTest = FileTest;

TEST_F(DescriptorTest, IsClosedOnceByItsLastOwner) {
  Descriptor file(::open(directory_.c_str(), O_RDONLY | O_CLOEXEC));
  const int fd = file.fd();
  {
    Descriptor other = std::move(file);
    EXPECT_EQ(other.fd(), fd);
    EXPECT_NE(::fcntl(fd, F_GETFD), -1);
  }
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
  Descriptor again(::open(directory_.c_str(), O_RDONLY | O_CLOEXEC));
  const int second = again.fd();
  again = Descriptor(::open(directory_.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(::fcntl(second, F_GETFD), -1);  // what is replaced is closed at once
  EXPECT_EQ(again.Close(), 0);
  EXPECT_FALSE(again.is_open());
  EXPECT_EQ(again.Close(), 0);
}

TEST_F(DescriptorTest, KeepsErrno) {
  Descriptor none(1 << 30);
  errno = ENOSPC;
  EXPECT_EQ(none.Close(), EBADF);
  EXPECT_EQ(errno, ENOSPC);
}

TEST_F(FileTest, IsReadWholeUpToItsLimit) {
  const fs::path path = directory_ / "a";
  const std::string text(100000, 'x');
  std::ofstream(path) << text;
  EXPECT_EQ(ReadWholeFile(path, text.size()).content, text);
  EXPECT_EQ(ReadWholeFile(path, text.size(), FileKind::kAny).content, text);
  const WholeFile rejected = ReadWholeFile(path, text.size() - 1);
  EXPECT_EQ(rejected.problem, ReadProblem::kTooLong);
  EXPECT_EQ(rejected.bytes, text.size());
  EXPECT_EQ(rejected.content, "");
}

TEST_F(FileTest, ThatIsNoneIsRejected) {
  const WholeFile missing = ReadWholeFile(directory_ / "a", 10);
  EXPECT_EQ(missing.problem, ReadProblem::kOpen);
  EXPECT_EQ(missing.error, ENOENT);
  EXPECT_EQ(ReadWholeFile(directory_, 10).problem, ReadProblem::kNotRegular);
  const WholeFile directory = ReadWholeFile(directory_, 10, FileKind::kAny);
  EXPECT_EQ(directory.problem, ReadProblem::kRead);
  EXPECT_EQ(directory.error, EISDIR);
}

TEST_F(FileTest, MayBeAPipeWhereThatIsAllowed) {
  const fs::path pipe = directory_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReadWholeFile(pipe, 10).problem, ReadProblem::kNotRegular);  // nobody writes to it
  const std::string text(200000, 'x');
  for (const std::size_t limit : {text.size(), text.size() - 1}) {
    std::thread writer([&] { std::ofstream(pipe) << text; });
    const WholeFile read = ReadWholeFile(pipe, limit, FileKind::kAny);
    writer.join();
    EXPECT_EQ(read.problem, limit < text.size() ? ReadProblem::kTooLong : ReadProblem::kNone);
    EXPECT_EQ(read.content, limit < text.size() ? "" : text);
  }
}

TEST_F(FileTest, IsReadFromAnOffset) {
  std::ofstream(directory_ / "a") << "abcdef";
  const Descriptor file(::open((directory_ / "a").c_str(), O_RDONLY | O_CLOEXEC));
  std::string part(4, ' ');
  EXPECT_EQ(ReadAt(file.fd(), 1, std::as_writable_bytes(std::span(part))).bytes, 4U);
  EXPECT_EQ(part, "bcde");
  const Transfer last = ReadAt(file.fd(), 5, std::as_writable_bytes(std::span(part)));
  EXPECT_EQ(last.bytes, 1U);
  EXPECT_EQ(last.error, 0);
  EXPECT_EQ(ReadAt(-1, 0, std::as_writable_bytes(std::span(part))).error, EBADF);
}

TEST_F(FileTest, TakesItsPlaceWhenItIsCommitted) {
  const fs::path path = directory_ / "a";
  std::ofstream(path) << "old";
  for (const bool is_durable : {false, true}) {
    const std::string text = is_durable ? "newest" : "new";
    {
      AtomicFile file(path, {.is_durable = is_durable});
      EXPECT_EQ(file.Write(text.substr(0, 1)), 0);
      EXPECT_EQ(file.Write(text.substr(1)), 0);
      EXPECT_EQ(file.Finish(), 0);
      EXPECT_NE(tests::TextOf(path), text);
      EXPECT_EQ(file.Commit(), 0);
    }
    EXPECT_EQ(tests::TextOf(path), text);
    EXPECT_EQ(CountFiles(), 1U);
  }
}

TEST_F(FileTest, IsNothingUnlessItIsCommitted) {
  const fs::path path = directory_ / "a";
  std::ofstream(directory_ / ".a.tmp") << "of a process that was killed, and longer";
  {
    AtomicFile file(path);
    EXPECT_TRUE(fs::exists(directory_ / ".a.tmp"));
    file.Write("new");
  }
  EXPECT_EQ(CountFiles(), 0U);
  std::ofstream(directory_ / ".a.tmp") << "of a process that was killed, and longer";
  EXPECT_EQ(ReplaceFile(path, "new"), 0);
  EXPECT_EQ(tests::TextOf(path), "new");
}

TEST_F(FileTest, KeepsItsFirstErrorAndTheOldFile) {
  const fs::path path = directory_ / "a";
  std::ofstream(path) << "old";
  // In the place of both names under which it could be made.
  fs::create_directory(directory_ / ".a.tmp");
  fs::create_directory(directory_ / (".a.tmp-" + std::to_string(::getpid())));
  AtomicFile file(path);
  EXPECT_EQ(file.error(), EEXIST);
  EXPECT_EQ(file.Write("new"), EEXIST);
  EXPECT_EQ(file.Commit(), EEXIST);
  EXPECT_EQ(tests::TextOf(path), "old");
  EXPECT_EQ(ReplaceFile(directory_ / "none/a", "new"), ENOENT);
  fs::create_directory(directory_ / "directory");
  EXPECT_EQ(ReplaceFile(directory_ / "directory", "new"), EISDIR);
  EXPECT_FALSE(fs::exists(directory_ / ".directory.tmp"));
}

TEST_F(FileTest, FollowsNoLinkInItsTemporaryPlace) {
  std::ofstream(directory_ / "other") << "other";
  fs::create_symlink(directory_ / "other", directory_ / ".a.tmp");
  EXPECT_EQ(ReplaceFile(directory_ / "a", "new"), 0);
  EXPECT_EQ(tests::TextOf(directory_ / "a"), "new");
  EXPECT_EQ(tests::TextOf(directory_ / "other"), "other");
}

TEST_F(FileTest, IsWrittenInADirectoryThatIsOpen) {
  const Descriptor directory(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(ReplaceFile("a", "new", {.mode = 0600, .directory = directory.fd()}), 0);
  EXPECT_EQ(tests::TextOf(directory_ / "a"), "new");
  EXPECT_EQ(fs::status(directory_ / "a").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(CountFiles(), 1U);
}

TEST_F(FileTest, ThatCannotBeWrittenIsAnError) {
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full.is_open()) GTEST_SKIP() << "no /dev/full here";
  const Transfer written = WriteAll(full.fd(), "text");
  EXPECT_EQ(written.error, ENOSPC);
  EXPECT_EQ(written.bytes, 0U);
  EXPECT_EQ(SyncFile(full.fd()), 0);  // it does not know the call
  EXPECT_EQ(SyncFile(-1), EBADF);
}

TEST_F(FileTest, MakesDirectoriesOrSaysWhatIsInTheirWay) {
  EXPECT_EQ(MakeDirectories(directory_ / "a" / "b"), "");
  EXPECT_EQ(MakeDirectories(directory_ / "a" / "b"), "");
  // Scratch was purged, and with it what a link names.
  fs::create_symlink("/nonexist/scratch", directory_ / "link");
  const std::string to_nothing = (directory_ / "link").string() +
                                 " is a link to /nonexist/scratch, which is not there (make that "
                                 "directory)";
  EXPECT_EQ(MakeDirectories(directory_ / "link"), to_nothing);
  EXPECT_EQ(MakeDirectories(directory_ / "link" / "below"), to_nothing);
  EXPECT_EQ(MakeDirectories(directory_ / "link" / ""), to_nothing);
  fs::create_symlink("a", directory_ / "to_folder");
  EXPECT_EQ(MakeDirectories(directory_ / "to_folder" / "c"), "");
  std::ofstream(directory_ / "file").put('x');
  const std::string is_file = (directory_ / "file").string() + " is a file, not a directory";
  EXPECT_EQ(MakeDirectories(directory_ / "file"), is_file);
  EXPECT_EQ(MakeDirectories(directory_ / "file" / "below" / "it"), is_file);
  EXPECT_EQ(MakeDirectories("/proc/self/x"), "No such file or directory");
  fs::create_symlink("loop", directory_ / "loop");
  EXPECT_NE(MakeDirectories(directory_ / "loop"), "");
}

TEST(FormatVersion, IsTheNumberBehindTheBeginning) {
  EXPECT_EQ(FormatVersion("a file 1\nmore", "a file "), 1);
  EXPECT_EQ(FormatVersion("a file 20, and more", "a file "), 20);
  EXPECT_EQ(FormatVersion("a file 3", "a file "), 3);
}

TEST(FormatVersion, OfAnyOtherTextThereIsNone) {
  for (const char* text : {"", "a file", "a file ", "a file x", "a file -1", "another file 1",
                           "a file 99999999999999999999"}) {
    EXPECT_EQ(FormatVersion(text, "a file "), std::nullopt) << text;
  }
}

TEST(FormatVersion, ANewerOneIsDescribedWithWhatIsKnownAndWhatToDo) {
  EXPECT_EQ(DescribeNewerFormat("a file", 3, 1),
            "a file of format 3, and this program reads format 1: use the version of ddlrun that "
            "has written it, or a newer one");
}

TEST(WholeNumber, IsAllOfTheText) {
  EXPECT_EQ(WholeNumber<int>("29500"), 29500);
  EXPECT_EQ(WholeNumber<int>("007"), 7);
  EXPECT_EQ(WholeNumber<int>("-1"), -1);
  EXPECT_EQ(WholeNumber<std::int64_t>("4294996796"), 4294996796);
  EXPECT_EQ(WholeNumber<double>("2.5e3"), 2500.0);
  EXPECT_EQ(WholeNumber<std::uint64_t>("ff", 16), 255U);
}

TEST(WholeNumber, IsNoneWithAnythingElse) {
  for (const std::string text : {"", "29500abc", "abc", "1 ", " 1", "+1", "1,2", "0x10", "1.0",
                                 "4294996796", "-2147483649", "--1", "-"}) {
    EXPECT_EQ(WholeNumber<int>(text), std::nullopt) << text;
  }
  EXPECT_EQ(WholeNumber<int>(std::string("1\0", 2)), std::nullopt);
  for (const std::string text : {"-1", "18446744073709551616"}) {
    EXPECT_EQ(WholeNumber<std::uint64_t>(text), std::nullopt) << text;
  }
  for (const std::string text : {"", "1.5s", "1,5", ".", "1e999"}) {
    EXPECT_EQ(WholeNumber<double>(text), std::nullopt) << text;
  }
  for (const std::string text : {"0xff", "fg", ""}) {
    EXPECT_EQ(WholeNumber<unsigned>(text, 16), std::nullopt) << text;
  }
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

TEST(QuoteCommand, QuotesOnlyWhatAShellWouldChange) {
  EXPECT_EQ(QuoteCommand({"a-b_c=/d.e:f,g@h%i+j", "k l", "", "it's", "$HOME", "-mode p:4x1x1x1 "}),
            "a-b_c=/d.e:f,g@h%i+j 'k l' '' 'it'\\''s' '$HOME' '-mode p:4x1x1x1 '");
}

TEST(Shortened, IsCutAtACharacterAndHasTheirNumber) {
  struct Row {
    std::string text;
    std::size_t max;
    std::string shown;
  };
  for (const Row& row :
       {Row{"", 3, ""}, Row{"abc", 3, "abc"}, Row{"abcd", 3, "abc... (4 characters)"},
        Row{"\u00e4\u00f6\u00fc", 3, "\u00e4\u00f6\u00fc"},
        Row{"\u00e4\u00f6\u00fc\u00df", 3, "\u00e4\u00f6\u00fc... (4 characters)"},
        Row{"a\u20ac\U0001f600bc", 3, "a\u20ac\U0001f600... (5 characters)"},
        // No UTF-8: bytes of characters that are not whole.
        Row{"\x80\x80\x80\x80", 3, "\x80\x80\x80... (4 characters)"},
        Row{"\xe4\xe4\xe4\xe4", 3, "\xe4\xe4\xe4... (4 characters)"},
        Row{"abc\xc3", 3, "abc... (4 characters)"}}) {
    EXPECT_EQ(Shortened(row.text, row.max), row.shown);
  }
  EXPECT_EQ(Shortened(std::string(130000, 'x')), std::string(256, 'x') + "... (130000 characters)");
}

TEST(WithShortArguments, ShortensEachThatAMessageRepeats) {
  const std::string a(130000, 'a');
  const std::string b = std::string(320, 'b') + " c";
  const std::string short_a = std::string(256, 'a') + "... (130000 characters)";
  const std::string short_b = std::string(256, 'b') + "... (322 characters)";
  struct Row {
    std::vector<std::string> arguments;
    std::string message, shown;
  };
  for (const Row& row :
       {Row{{"-n", "x"}, "-n: 'x' is not a number", "-n: 'x' is not a number"},
        Row{{"-n", a}, "-n: '" + a + "' is not a number", "-n: '" + short_a + "' is not a number"},
        Row{{"-n=" + a},
            "-n: '" + a + "' is not a number",
            "-n: '" + short_a + "' is not a number"},
        Row{{"--" + a + "=1"},
            "unknown option --" + a,
            "unknown option --" + std::string(254, 'a') + "... (130002 characters)"},
        Row{{"-x", a},
            "-x " + a + ": -x " + a + "=value",
            "-x " + short_a + ": -x " + short_a + "=value"},
        Row{{"-l", "1," + a}, "'" + a + "' is not a number", "'" + short_a + "' is not a number"},
        Row{{"-v", "V=" + a + "=" + a},
            "'" + a + "=" + a + "'",
            "'" + std::string(256, 'a') + "... (260001 characters)'"},
        Row{{a, b}, "/home/" + b + " and " + a, "/home/" + short_b + " and " + short_a},
        Row{{a}, "something else", "something else"}}) {
    EXPECT_EQ(WithShortArguments(row.message, row.arguments), row.shown);
  }
}

TEST(ShortCommand, IsTheCommandUnlessThatIsVeryLong) {
  EXPECT_EQ(ShortCommand({"srun", "-n", "4", "a b"}), "srun -n 4 'a b'");
  EXPECT_EQ(ShortCommand({"env", "LIST=" + std::string(2000, 'x'), "mpirun"}),
            "env 'LIST=" + std::string(995, 'x') + "... (2005 characters)' mpirun");
  const std::string many = ShortCommand(std::vector<std::string>(10000, "word"));
  EXPECT_LT(many.size(), 16500U);
  EXPECT_TRUE(many.ends_with("word word ... (6723 more words)")) << many.substr(many.size() - 60);
}

TEST(EditDistance, CountsEditsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0U);
  EXPECT_EQ(EditDistance("", "abc"), 3U);
  EXPECT_EQ(EditDistance("abc", "abc"), 0U);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3U);
  EXPECT_EQ(EditDistance("btach_size", "batch_size"), 1U);
}

TEST(NearestSpelling, FindsTheOneMeant) {
  const std::vector<std::string> options = {"--batch_size", "--data_dir", "--seed"};
  EXPECT_EQ(NearestSpelling("--btach_size", options), "--batch_size");
  EXPECT_EQ(NearestSpelling("--sed", options), "--seed");
  EXPECT_EQ(NearestSpelling("--num", {"--nun", "--nub"}), "--nun");  // the first of both
}

TEST(NearestSpelling, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(NearestSpelling("--quantize", {"--seed", "--mode"}), "");
  EXPECT_EQ(NearestSpelling(std::string(100000, 'x'), {"--seed"}), "");
  EXPECT_EQ(NearestSpelling("", {}), "");
}

TEST(CpuQuota, OfVersion2IsReadFromCpuMax) {
  const CpuQuota quota = ParseCpuMax("150000 100000\n");
  EXPECT_EQ(quota.time, 150000);
  EXPECT_EQ(quota.period, 100000);
  EXPECT_EQ(ParseCpuMax("150000 100000").period, 100000);
}

TEST(CpuQuota, OfVersion1IsReadFromTwoFiles) {
  const CpuQuota quota = ParseCfsQuota("50000\n", "100000\n");
  EXPECT_EQ(quota.time, 50000);
  EXPECT_EQ(quota.period, 100000);
}

TEST(CpuQuota, IsNoLimitWhereTheTextSaysNone) {
  for (const char* text :
       {"max 100000\n", "", "\n", "100000\n", "x y\n", "-1 100000\n", "0 100000\n", "1000 0\n",
        "1000 -5\n", "1000x 100000\n", "1000 100000x\n", "99999999999999999999 100000\n"}) {
    EXPECT_EQ(ParseCpuMax(text).period, 0) << text;
  }
  EXPECT_EQ(ParseCfsQuota("-1\n", "100000\n").period, 0);
  EXPECT_EQ(ParseCfsQuota("", "100000\n").period, 0);
  EXPECT_EQ(ParseCfsQuota("50000\n", "").period, 0);
  EXPECT_EQ(ParseCfsQuota("50000 7\n", "100000\n").period, 0);
}

TEST(CpuQuota, IsSharedByTheRanksAndRoundedUp) {
  struct Case {
    CpuQuota quota;
    int ranks;
    int threads;
  };
  for (const Case& c :
       {Case{{50000, 100000}, 1, 1}, Case{{50000, 100000}, 4, 1}, Case{{150000, 100000}, 1, 2},
        Case{{150000, 100000}, 2, 1}, Case{{200000, 100000}, 1, 2}, Case{{200001, 100000}, 1, 3},
        Case{{800000, 100000}, 2, 4}, Case{{700000, 100000}, 2, 4}, Case{{600000, 100000}, 2, 3},
        Case{{LLONG_MAX, 1}, 1, INT_MAX}, Case{{1, LLONG_MAX}, 3, 1}, Case{{}, 2, INT_MAX}}) {
    EXPECT_EQ(ThreadsOfShare(c.quota, c.ranks), c.threads)
        << c.quota.time << '/' << c.quota.period << " for " << c.ranks;
  }
}

std::string GroupIn(const std::string& text, GroupVersion version) {
  char path[16] = "untouched";
  return FindGroup(text.c_str(), version, "cpu", path, sizeof(path)) ? path : "none";
}

TEST(CpuGroup, IsThatOfTheControllerCpu) {
  const std::string hybrid =
      "5:cpuset:/set\n4:cpuacct,cpu:/job_7\n3:name=cpu:/named\n1:memory:/m\n0::/job_8\n";
  EXPECT_EQ(GroupIn(hybrid, GroupVersion::k1), "/job_7");
  EXPECT_EQ(GroupIn(hybrid, GroupVersion::k2), "/job_8");
  EXPECT_EQ(GroupIn("1:cpu:/a:b", GroupVersion::k1), "/a:b");
  EXPECT_EQ(GroupIn("0::/\n", GroupVersion::k1), "none");
  EXPECT_EQ(GroupIn("2:cpuacct:/\n1:cpu:/\n", GroupVersion::k2), "none");
}

TEST(CpuGroup, IsNotInATextOfAnotherForm) {
  for (const char* text : {"", "\n\n", "0", "0:", "0::", "0::\n", "0::x", "1:cpu", "1:cpu\n:/x",
                           "cpu:/x", "0:\n:/x", "1:cpu:relative\n"}) {
    EXPECT_EQ(GroupIn(text, GroupVersion::k1), "none") << text;
    EXPECT_EQ(GroupIn(text, GroupVersion::k2), "none") << text;
  }
}

TEST(CpuGroup, IsNotFoundWhereItsPathIsTooLong) {
  EXPECT_EQ(GroupIn("0::/4567890123456\n", GroupVersion::k2), "/4567890123456");
  EXPECT_EQ(GroupIn("0::/456789012345678\n", GroupVersion::k2), "none");
}

class MemoryKillsTest : public tests::DirectoryTest {
 protected:
  // "3 of 80": kills, and MiB of the limit.
  std::string Kills() {
    const MemoryKills kills = ReadMemoryKills(directory_.c_str());
    return std::to_string(kills.count) + " of " + std::to_string(kills.limit_bytes >> 20);
  }
};

TEST_F(MemoryKillsTest, AreThoseOfTheOwnGroupInBothVersions) {
  EXPECT_EQ(Kills(), "-1 of 0");
  Write("proc/self/cgroup", "4:cpu:/c\n3:memory:/slurm/job_7\n0::/u\n");
  EXPECT_EQ(Kills(), "-1 of 0");
  Write("sys/fs/cgroup/memory/slurm/job_7/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
  EXPECT_EQ(Kills(), "3 of 0");
  Write("sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Kills(), "3 of 0");
  Write("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "83886080\n");
  EXPECT_EQ(Kills(), "3 of 80");
  Write("proc/self/cgroup", "0::/slurm/step_0\n");
  EXPECT_EQ(Kills(), "-1 of 0");
  Write("sys/fs/cgroup/slurm/step_0/memory.events", "low 0\nhigh 5\noom 2\noom_kill 1\n");
  Write("sys/fs/cgroup/slurm/step_0/memory.max", "max\n");
  EXPECT_EQ(Kills(), "1 of 0");
  Write("sys/fs/cgroup/slurm/memory.max", "2097152\n");
  EXPECT_EQ(Kills(), "1 of 2");
  Write("sys/fs/cgroup/slurm/step_0/memory.max", "1048576\n");
  EXPECT_EQ(Kills(), "1 of 1");
  Write("proc/4711/cgroup", "3:memory:/slurm/job_7\n");
  EXPECT_EQ(ReadMemoryKills(directory_.c_str(), "4711").count, 3);
  Write("sys/fs/cgroup/slurm/step_0/memory.events", "oom 2\n");
  EXPECT_EQ(Kills(), "-1 of 0");
  Write("sys/fs/cgroup/memory.events", "oom_kill 7\n");
  Write("proc/self/cgroup", "0::/../outside\n");
  EXPECT_EQ(Kills(), "7 of 0");
}

TEST(DescribeMemoryKills, SaysWhatHasChanged) {
  const struct {
    MemoryKills before;
    MemoryKills now;
    std::string text;
  } kCases[] = {
      {{0, 0}, {0, 0}, ""},
      {{2, 1 << 20}, {2, 1 << 20}, ""},
      {{-1, 0}, {1, 0}, ""},
      {{1, 0}, {-1, 0}, ""},
      {{0, 0}, {1, 0}, "the kernel killed 1 process for memory: give the job more (#SBATCH --mem)"},
      {{1, 0},
       {3, 80 << 20},
       "the kernel killed 2 processes for memory (limit 80 MiB): give the job more (#SBATCH "
       "--mem)"},
  };
  for (const auto& [before, now, text] : kCases) {
    std::array<char, 200> described = {};
    DescribeMemoryKills(before, now, described.data(), described.size());
    EXPECT_EQ(described.data(), text);
  }
}

// A made-up machine of 8 cores.
class ThreadsWithinQuotaTest : public tests::DirectoryTest {
 protected:
  int Threads(int ranks = 1) { return ThreadsWithinQuota(directory_.c_str(), 8, ranks); }
};

TEST_F(ThreadsWithinQuotaTest, AreTheCoresWhereNothingIsKnown) {
  EXPECT_EQ(Threads(), 8);
  Write("proc/self/cgroup", "0::/job\n");
  EXPECT_EQ(Threads(), 8);
  Write("sys/fs/cgroup/job/cpu.max", "max 100000\n");
  EXPECT_EQ(Threads(), 8);
  Write("sys/fs/cgroup/job/cpu.max", "garbage\n");
  EXPECT_EQ(Threads(), 8);
  Write("sys/fs/cgroup/job/cpu.max", "1600000 100000\n");
  EXPECT_EQ(Threads(), 8);
}

TEST_F(ThreadsWithinQuotaTest, AreOneForHalfACpuOfVersion2) {
  Write("proc/self/cgroup", "0::/job\n");
  Write("sys/fs/cgroup/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(Threads(), 1);
}

TEST_F(ThreadsWithinQuotaTest, AreTheShareOfEachRank) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(Threads(1), 2);
  EXPECT_EQ(Threads(2), 1);
}

TEST_F(ThreadsWithinQuotaTest, AreThoseOfTheTightestGroupAbove) {
  Write("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  Write("sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "500000 100000\n");
  EXPECT_EQ(Threads(), 5);
  Write("sys/fs/cgroup/slurm/job_7/cpu.max", "300000 100000\n");
  EXPECT_EQ(Threads(), 3);
  Write("sys/fs/cgroup/slurm/cpu.max", "400000 100000\n");
  EXPECT_EQ(Threads(), 3);
  Write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(Threads(), 2);
}

// The limit of a group beside it, or of another machine's, is none of ours.
TEST_F(ThreadsWithinQuotaTest, AreNotThoseOfOtherGroups) {
  Write("proc/self/cgroup", "0::/job_7\n");
  Write("sys/fs/cgroup/job_8/cpu.max", "100000 100000\n");
  Write("sys/fs/cpu.max", "100000 100000\n");
  EXPECT_EQ(Threads(), 8);
}

TEST_F(ThreadsWithinQuotaTest, AreThoseOfVersion1ByAllNamesOfItsMount) {
  for (const std::string mount : {"cpu", "cpu,cpuacct", "cpuacct,cpu"}) {
    fs::remove_all(directory_ / "sys");
    Write("proc/self/cgroup", "4:memory:/m\n3:cpuacct,cpu:/docker/0123\n");
    Write("sys/fs/cgroup/" + mount + "/docker/0123/cpu.cfs_quota_us", "-1\n");
    Write("sys/fs/cgroup/" + mount + "/docker/0123/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(Threads(), 8) << mount;
    Write("sys/fs/cgroup/" + mount + "/docker/0123/cpu.cfs_quota_us", "250000\n");
    EXPECT_EQ(Threads(), 3) << mount;
  }
}

// The path is the host's; what is mounted is the container's own group.
TEST_F(ThreadsWithinQuotaTest, AreThoseOfTheMountInAContainer) {
  Write("proc/self/cgroup", "3:cpu,cpuacct:/docker/0123\n0::/docker/0123\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Threads(), 2);
  fs::remove_all(directory_ / "sys");
  Write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(Threads(), 3);
  Write("proc/self/cgroup", "0::/../0123\n");
  Write("sys/fs/0123/cpu.max", "100000 100000\n");
  EXPECT_EQ(Threads(), 3);
}

TEST_F(ThreadsWithinQuotaTest, AreTheLeastOfBothVersions) {
  Write("proc/self/cgroup", "1:cpu:/job\n0::/job\n");
  Write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "400000\n");
  Write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Threads(), 4);
  Write("sys/fs/cgroup/unified/job/cpu.max", "200000 100000\n");
  EXPECT_EQ(Threads(), 2);
}

}  // namespace
}  // namespace support
