// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/record_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"
#include "trainer/core/philox.h"
#include "trainer/data/files/data_set.h"

namespace trainer {
namespace {

constexpr std::uint64_t kRoom = std::uint64_t{1} << 30;
constexpr int kAllRecords = 6;

// A set of three files with 1, 2 and 3 records, of which the longest has some pages.
class RecordCacheTest : public ::testing::Test {
 protected:
  RecordCacheTest() {
    fs::create_directory(set_);
    WriteSet(set_, 1);
    options_ = {.dir = dir_ / "kept", .max_bytes = kRoom, .settled = std::chrono::nanoseconds(0)};
  }

  static std::string Text(std::uint64_t seed, std::size_t bytes) {
    Random random(seed, RandomPurpose::kGenerate, bytes);
    std::string text;
    while (text.size() < bytes) text += static_cast<char>(random.Below(256));
    return text;
  }
  static void WriteSet(const std::string& set, std::uint64_t seed) {
    WriteRecords(set + "/train-0", {Text(seed, 1)});
    WriteRecords(set + "/train-1", {Text(seed, 20'000), Text(seed, 3)});
    WriteRecords(set + "/train-2", {Text(seed, 4), "", Text(seed, 9'000)});
    WriteRecords(set + "/validation-0", {Text(seed, 5'000)});
  }

  DataSet Open(const RecordCacheOptions& options, const std::string& set,
               Split split = Split::kTrain) const {
    return {set, "", split, 1, {}, {}, options};
  }
  DataSet Open() const { return Open(options_, set_); }

  static std::vector<std::string> ReadAll(const DataSet& set) {
    std::vector<std::string> all;
    std::vector<std::uint8_t> buffer;
    for (std::int64_t record = 0; record < set.records(); ++record) {
      const auto data = set.Read(record, buffer);
      all.emplace_back(data.begin(), data.end());
    }
    return all;
  }
  std::vector<std::string> Truth() const { return ReadAll(Open({}, set_)); }

  // Reads all of `set`, which must be what is in the files; how many were kept already.
  std::int64_t HitsForTheTruth(const DataSet& set) const {
    const std::int64_t before = set.record_cache()->hits;
    EXPECT_EQ(ReadAll(set), Truth());
    const RecordCacheUse use = *set.record_cache();
    return use.hits - before;
  }

  // The files that are kept.
  std::vector<std::string> Kept() const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(options_.dir)) {
      paths.push_back(entry.path().string());
    }
    std::ranges::sort(paths);
    return paths;
  }
  static void Overwrite(const std::string& path, std::uint64_t offset, const std::string& text) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file << text;
  }

  TemporaryDirectory dir_;
  const std::string set_ = dir_ / "set";
  RecordCacheOptions options_;
};

TEST_F(RecordCacheTest, EachRecordIsReadOnceFromTheSet) {
  const DataSet set = Open();
  EXPECT_EQ(HitsForTheTruth(set), 0);
  EXPECT_EQ(HitsForTheTruth(set), kAllRecords);
  const RecordCacheUse use = *set.record_cache();
  EXPECT_EQ(use.misses, kAllRecords);
  EXPECT_EQ(use.set_bytes, 6 * 16U + 1 + 20'000 + 3 + 4 + 9'000);
  EXPECT_GE(use.bytes, use.set_bytes);
  EXPECT_EQ(use.max_bytes, kRoom);
  EXPECT_EQ(use.note, "");
  EXPECT_THAT(Kept(), ElementsAre(use.path));
  struct stat status {};
  ASSERT_EQ(::stat(use.path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
}

TEST_F(RecordCacheTest, WhatOthersHaveReadIsThere) {
  const DataSet one = Open();
  const DataSet other = Open();
  ReadAll(one);
  EXPECT_EQ(HitsForTheTruth(other), kAllRecords);
}

TEST_F(RecordCacheTest, ItIsThereForLaterRuns) {
  ReadAll(Open());
  const DataSet later = Open();
  // The set itself is not asked.
  for (const auto& entry : fs::directory_iterator(set_)) {
    fs::resize_file(entry.path(), 0);
  }
  EXPECT_EQ(ReadAll(later).size(), static_cast<std::size_t>(kAllRecords));
  EXPECT_EQ(later.record_cache()->hits, kAllRecords);
}

TEST_F(RecordCacheTest, WhateverHappensToTheFileTheRecordsAreThoseOfTheSet) {
  const std::vector<std::string> truth = Truth();
  const DataSet set = Open();
  ReadAll(set);
  const std::string path = set.record_cache()->path;
  const auto bytes = set.record_cache()->set_bytes;
  Random random(7, RandomPurpose::kGenerate, 0);
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t at = random.Below(static_cast<std::uint32_t>(bytes));
    switch (random.Below(4)) {
      case 0:
        fs::resize_file(path, at);
        break;
      case 1:
        fs::resize_file(path, bytes + at);
        break;
      default:
        Overwrite(path, at, Text(static_cast<std::uint64_t>(i), 1 + random.Below(3'000)));
    }
    ASSERT_EQ(ReadAll(set), truth) << i;
    // Mended by that.
    ASSERT_EQ(HitsForTheTruth(set), kAllRecords) << i;
  }
}

TEST_F(RecordCacheTest, ADamagedRecordOfTheSetIsNotKept) {
  const std::string path = set_ + "/train-1";
  const DataSet set = Open();
  Overwrite(path, 100, "x");
  std::vector<std::uint8_t> buffer;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(DataErrorOf([&] { set.Read(1, buffer); }),
                HasSubstr("train-1, record at offset 0: the checksum of the data is wrong"));
  }
  EXPECT_EQ(set.record_cache()->hits, 0);
  EXPECT_EQ(set.record_cache()->bytes, 0U);
}

TEST_F(RecordCacheTest, ASetThatHasChangedIsReadAnew) {
  const std::string before = Open().record_cache()->path;
  ReadAll(Open());
  WriteSet(set_, 2);
  const DataSet set = Open();
  EXPECT_EQ(HitsForTheTruth(set), 0);
  EXPECT_NE(set.record_cache()->path, before);
  EXPECT_FALSE(fs::exists(before));  // nobody will want it again
}

TEST_F(RecordCacheTest, ASetThatIsBeingChangedIsNotKept) {
  options_.settled = std::chrono::hours(1);
  const DataSet set = Open();
  EXPECT_EQ(HitsForTheTruth(set), 0);
  EXPECT_EQ(HitsForTheTruth(set), 0);
  EXPECT_EQ(set.record_cache()->path, "");
  EXPECT_EQ(set.record_cache()->note, set_ + "/train-0 was changed just now");
  EXPECT_THAT(Kept(), IsEmpty());
}

TEST_F(RecordCacheTest, WhenItIsFullTheRestComesFromTheSet) {
  options_.max_bytes = 26'000;  // the long record of train-1 and short ones, in whole pages
  const DataSet set = Open();
  EXPECT_EQ(HitsForTheTruth(set), 0);
  EXPECT_EQ(HitsForTheTruth(set), 5);
  EXPECT_EQ(set.record_cache()->note, "it is full");
  EXPECT_LE(set.record_cache()->bytes, options_.max_bytes);
}

TEST_F(RecordCacheTest, TheLimitIsOfAllSets) {
  const DataSet validation = Open(options_, set_, Split::kValidation);
  std::vector<std::uint8_t> buffer;
  validation.Read(0, buffer);
  options_.max_bytes = validation.record_cache()->bytes;
  const DataSet set = Open();
  ReadAll(set);
  EXPECT_EQ(set.record_cache()->bytes, 0U);
  EXPECT_EQ(set.record_cache()->note, "it is full");
}

TEST_F(RecordCacheTest, WithoutALimitHalfOfWhatIsFreeMayBeTaken) {
  options_.max_bytes = 0;
  const DataSet set = Open();
  const std::uint64_t free = fs::space(options_.dir).available;
  EXPECT_NEAR(static_cast<double>(set.record_cache()->max_bytes), static_cast<double>(free) / 2,
              static_cast<double>(free) / 4);
  ReadAll(set);
  EXPECT_EQ(HitsForTheTruth(set), kAllRecords);
}

// The first of all other sets' files goes for one that needs its room; the parts of one set and
// what a process has open stay.
TEST_F(RecordCacheTest, SetsThatNobodyReadsMakeRoom) {
  const std::vector<std::string> sets = {dir_ / "a", dir_ / "b", dir_ / "c", dir_ / "d",
                                         dir_ / "e"};
  const std::vector<std::time_t> ages = {50, 20, 30, 40, 10};  // days
  std::vector<std::string> paths;
  for (const std::string& path : sets) {
    fs::create_directory(path);
    WriteSet(path, 3);
    const DataSet set = Open(options_, path);
    ReadAll(set);
    paths.push_back(set.record_cache()->path);
    fs::last_write_time(paths.back(), fs::file_time_type::clock::now() -
                                          std::chrono::hours(24 * ages[paths.size() - 1]));
  }
  const DataSet validation = Open(options_, set_, Split::kValidation);
  ReadAll(validation);
  const std::string sibling = validation.record_cache()->path;
  const std::uint64_t each = Open(options_, sets[0]).record_cache()->bytes;

  const DataSet used = Open(options_, sets[0]);
  options_.max_bytes = 4 * each + validation.record_cache()->bytes;
  const DataSet set = Open();
  std::vector<bool> are_there;
  for (const std::string& path : paths) are_there.push_back(fs::exists(path));
  // The first is in use.
  EXPECT_THAT(are_there, ElementsAre(true, true, false, false, true));
  EXPECT_TRUE(fs::exists(sibling));
  EXPECT_EQ(HitsForTheTruth(set), 0);
  EXPECT_EQ(HitsForTheTruth(set), kAllRecords);

  // One that is all there needs none.
  options_.max_bytes = 1;
  Open();
  EXPECT_TRUE(fs::exists(paths[1]));
}

// By a process that was stopped while it did that.
TEST_F(RecordCacheTest, AFileThatIsBeingRemovedForEverIsNotWaitedFor) {
  const std::string path = Open().record_cache()->path;
  const support::Descriptor held(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(held.fd(), LOCK_EX), 0);
  options_.timeout = std::chrono::milliseconds(20);
  const DataSet set = Open();
  EXPECT_EQ(HitsForTheTruth(set), 0);
  EXPECT_EQ(set.record_cache()->path, "");
  EXPECT_EQ(set.record_cache()->note, "another process holds the lock of " + path);
}

// Of a process that may write no such file.
TEST_F(RecordCacheTest, WhatCannotBeWrittenIsReadFromTheSet) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit = {8'000, 8'000};
    std::signal(SIGXFSZ, SIG_IGN);
    const DataSet set = Open();
    const bool limits = ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
    const bool reads = ReadAll(set) == Truth() && ReadAll(set) == Truth();
    const bool says = set.record_cache()->note == "File too large";
    ::_exit(limits && reads && says && set.record_cache()->hits == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(RecordCacheTest, ADirectoryThatCannotBeUsedIsRejected) {
  fs::create_directory(options_.dir);
  fs::permissions(options_.dir, fs::perms::all);
  EXPECT_THAT(tests::Rejection<Error>(EX_OSERR, [&] { Open(); }),
              StartsWith("--record_cache: cannot use the directory " + options_.dir));
}

TEST_F(RecordCacheTest, ManyProcessesFillOneFile) {
  constexpr int kProcesses = 8;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const DataSet set = Open();
      bool is_true = true;
      for (int round = 0; round < 20; ++round) is_true = is_true && ReadAll(set) == Truth();
      ::_exit(is_true ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(HitsForTheTruth(Open()), kAllRecords);
}

}  // namespace
}  // namespace trainer
