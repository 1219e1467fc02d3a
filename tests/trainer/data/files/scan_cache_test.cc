// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/scan_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "ddldata/inspect.h"
#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"
#include "trainer/data/files/data_set.h"

namespace trainer {
namespace {

constexpr int kRecordsOfSet = 6;

// A set of three files with 1, 2 and 3 records, and a directory for what is found.
class ScanCacheTest : public ::testing::Test {
 protected:
  ScanCacheTest() {
    WriteRecords(paths_[0], {"a"});
    WriteRecords(paths_[1], {"bb", "ccc"});
    WriteRecords(paths_[2], {"d", "", "ffffff"});
    options_.dir = dir_ / "kept";
    options_.settled = std::chrono::nanoseconds(0);
  }

  std::vector<RecordFile> Open(bool keep_open = true) const {
    std::vector<RecordFile> files;
    for (const std::string& path : paths_) files.emplace_back(path, keep_open);
    return files;
  }
  SetScan Scan(const ScanCacheOptions& options) const {
    return ScanSet(Open(), "node1 /set train-", 2, options);
  }
  SetScan Scan() const { return Scan(options_); }
  SetScan ScanAnew() const { return Scan({}); }

  // The scans are those of the files as they are; how many files had to be read for that.
  std::int64_t ScannedForTheTruth(const ScanCacheOptions& options) const {
    const SetScan scan = Scan(options);
    ExpectTheTruth(scan);
    return scan.cost.scanned;
  }
  std::int64_t ScannedForTheTruth() const { return ScannedForTheTruth(options_); }

  void ExpectTheTruth(const SetScan& scan) const {
    const SetScan truth = ScanAnew();
    ASSERT_EQ(scan.files.size(), truth.files.size());
    for (std::size_t i = 0; i < truth.files.size(); ++i) {
      EXPECT_EQ(scan.files[i].places, truth.files[i].places) << paths_[i];
      EXPECT_EQ(scan.files[i].checksum, truth.files[i].checksum) << paths_[i];
    }
  }

  // The one file that is kept.
  std::string KeptPath() const {
    std::string path;
    for (const auto& entry : fs::directory_iterator(options_.dir)) {
      if (!entry.path().filename().string().starts_with("scan-")) continue;
      EXPECT_EQ(path, "");
      path = entry.path().string();
    }
    return path;
  }

  TemporaryDirectory dir_;
  const std::vector<std::string> paths_ = {dir_ / "train-0", dir_ / "train-1", dir_ / "train-2"};
  ScanCacheOptions options_;
};

TEST_F(ScanCacheTest, ReadsEachHeaderOnceAndNeverAgain) {
  const SetScan first = Scan();
  ExpectTheTruth(first);
  EXPECT_EQ(first.cost.files, 3);
  EXPECT_EQ(first.cost.scanned, 3);
  EXPECT_EQ(first.cost.headers, kRecordsOfSet);
  EXPECT_EQ(first.cost.bytes, std::uint64_t{kRecordsOfSet * 16});
  EXPECT_EQ(first.cost.note, "");
  EXPECT_GT(first.cost.seconds, 0);
  const SetScan second = Scan();
  ExpectTheTruth(second);
  EXPECT_EQ(second.cost.files, 3);
  EXPECT_EQ(second.cost.scanned, 0);
  EXPECT_EQ(second.cost.headers, 0);
  EXPECT_EQ(second.cost.bytes, 0U);
  EXPECT_EQ(second.cost.note, "");
}

TEST_F(ScanCacheTest, KeepsNothingUnlessToldWhere) {
  EXPECT_EQ(ScannedForTheTruth({}), 3);
  EXPECT_EQ(ScannedForTheTruth({}), 3);
  EXPECT_FALSE(fs::exists(options_.dir));
}

TEST_F(ScanCacheTest, IsOfOneSet) {
  Scan();
  EXPECT_EQ(ScanSet(Open(), "node1 /set2 train-", 2, options_).cost.scanned, 3);
  EXPECT_EQ(ScanSet(Open(), "node1 /set2 train-", 2, options_).cost.scanned, 0);
  EXPECT_EQ(Scan().cost.scanned, 0);
}

TEST_F(ScanCacheTest, FilesThatCannotStayOpenAreKeptToo) {
  EXPECT_EQ(ScanSet(Open(false), "node1 /set train-", 2, options_).cost.scanned, 3);
  EXPECT_EQ(ScannedForTheTruth(), 0);
}

TEST_F(ScanCacheTest, AFileInPlaceOfAnotherIsScanned) {
  Scan();
  WriteRecords(paths_[1], {"ccc", "bb"});  // of the same size
  EXPECT_EQ(ScannedForTheTruth(), 1);
  EXPECT_EQ(ScannedForTheTruth(), 0);
  fs::copy_file(paths_[2], dir_ / "copy");
  fs::rename(dir_ / "copy", paths_[2]);
  EXPECT_EQ(ScannedForTheTruth(), 1);
}

// With the size and the time of before: nobody can set the time of the change itself.
TEST_F(ScanCacheTest, AFileThatWasWrittenToIsScannedWhateverTimeItIsGiven) {
  const RecordFile before(paths_[1], true);
  Scan();
  struct stat status {};
  ASSERT_EQ(::stat(paths_[1].c_str(), &status), 0);
  const std::array<timespec, 2> times = {status.st_atim, status.st_mtim};
  FileIdentity now = before.identity();
  while (now.changed == before.identity().changed) {  // the clock of files has ticks
    WriteRecords(dir_ / "other", {"ccc", "bb"});
    const std::string bytes = tests::TextOf(dir_ / "other");
    const support::Descriptor file(::open(paths_[1].c_str(), O_WRONLY));
    ASSERT_EQ(::pwrite(file.fd(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    ASSERT_EQ(::utimensat(AT_FDCWD, paths_[1].c_str(), times.data(), 0), 0);
    now = RecordFile(paths_[1], true).identity();
  }
  ASSERT_EQ(now.modified, before.identity().modified);
  ASSERT_EQ(now.bytes, before.identity().bytes);
  ASSERT_EQ(now.inode, before.identity().inode);
  EXPECT_EQ(ScannedForTheTruth(), 1);
}

TEST_F(ScanCacheTest, AFileThatChangedLatelyIsNotKept) {
  ScanCacheOptions options = options_;
  options.settled = std::chrono::hours(1);
  EXPECT_EQ(ScannedForTheTruth(options), 3);
  EXPECT_THAT(KeptPath(), IsEmpty());
  EXPECT_EQ(ScannedForTheTruth(options), 3);
  EXPECT_EQ(ScannedForTheTruth(options_), 3);
  EXPECT_EQ(ScannedForTheTruth(options), 0);
}

TEST_F(ScanCacheTest, AFileThatChangesAfterItWasOpenedIsScannedInTheNextRun) {
  const std::vector<RecordFile> files = Open();
  do {
    ::chmod(paths_[2].c_str(), 0600);
  } while (RecordFile(paths_[2], true).identity() == files[2].identity());
  EXPECT_EQ(ScanSet(files, "node1 /set train-", 2, options_).cost.scanned, 3);
  EXPECT_EQ(ScannedForTheTruth(), 1);
}

TEST_F(ScanCacheTest, FilesComeAndGo) {
  std::vector<RecordFile> files = Open();
  files.erase(files.begin());
  EXPECT_EQ(ScanSet(files, "node1 /set train-", 2, options_).cost.scanned, 2);
  EXPECT_EQ(ScannedForTheTruth(), 1);
  const SetScan fewer = ScanSet(files, "node1 /set train-", 2, options_);
  EXPECT_EQ(fewer.cost.scanned, 0);
  EXPECT_EQ(fewer.files[0].places.size(), 2U);
  EXPECT_EQ(fewer.files[1].places.size(), 3U);
}

TEST_F(ScanCacheTest, IsWithoutEffectWithAnyByteChanged) {
  Scan();
  const std::string kept = KeptPath();
  const std::string bytes = tests::TextOf(kept);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = static_cast<char>(other[i] ^ 4);
    WriteText(kept, other);
    EXPECT_EQ(ScannedForTheTruth(), 3) << "byte " << i;
    EXPECT_EQ(tests::TextOf(kept), bytes) << "byte " << i;
  }
  for (const std::size_t size : {std::size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
    WriteText(kept, bytes.substr(0, size));
    EXPECT_EQ(ScannedForTheTruth(), 3) << size << " bytes";
  }
}

// Somebody with this user's rights writes records that fill their file, with a good checksum: each
// record that is read is refused, none is taken for another.
TEST_F(ScanCacheTest, AForgeryIsRejectedWhenItsRecordsAreRead) {
  Scan();
  const RecordFile file(paths_[1], true);
  auto files = ParseScans(AsBytes(tests::TextOf(KeptPath())), "node1 /set train-");
  ASSERT_TRUE(files);
  (*files)[1].scan.places = {{0, 19}, {19, 18}};
  WriteText(KeptPath(), FormatScans("node1 /set train-", *files));
  const SetScan forged = Scan();
  EXPECT_EQ(forged.cost.scanned, 0);
  std::vector<std::uint8_t> buffer;
  for (const RecordPlace& place : forged.files[1].places) {
    EXPECT_THAT(DataErrorOf([&] { file.Read(place, buffer); }), HasSubstr("no record of "));
  }
}

TEST_F(ScanCacheTest, ADirectoryThatCannotBeUsedIsNotedAndNoMore) {
  ScanCacheOptions options = options_;
  options.dir = dir_ / "none/kept";
  EXPECT_EQ(ScannedForTheTruth(options), 3);
  EXPECT_THAT(Scan(options).cost.note, StartsWith("cannot make the directory " + options.dir));

  fs::create_directory(options_.dir);
  ::chmod(options_.dir.c_str(), 0777);
  EXPECT_EQ(ScannedForTheTruth(), 3);
  EXPECT_THAT(Scan().cost.note, HasSubstr("is open to others"));
  EXPECT_TRUE(fs::is_empty(options_.dir));
}

// As in a file system that is full or read-only: locks of an earlier process are there.
TEST_F(ScanCacheTest, ADirectoryThatCannotBeWrittenIsNotedAndNoMore) {
  Scan();
  const std::string kept = KeptPath();
  fs::remove(kept);
  fs::create_directory(kept);
  EXPECT_EQ(ScannedForTheTruth(), 3);
  EXPECT_THAT(Scan().cost.note, StartsWith("cannot write " + kept));
}

TEST_F(ScanCacheTest, NobodyWaitsForEver) {
  const PrivateDirectory directory(options_.dir);
  std::vector<support::Descriptor> locks;
  for (const char digit : std::string("0123456789abcdef")) {
    auto lock = directory.Lock(std::string("lock-") + digit, std::chrono::milliseconds(0));
    ASSERT_TRUE(lock);
    locks.push_back(std::move(*lock));
  }
  options_.timeout = std::chrono::milliseconds(20);
  EXPECT_EQ(ScannedForTheTruth(), 3);
  EXPECT_THAT(Scan().cost.note, StartsWith(options_.dir + ": another process holds the lock"));
  EXPECT_THAT(KeptPath(), IsEmpty());
  locks.clear();
  EXPECT_EQ(ScannedForTheTruth(), 3);
  EXPECT_EQ(ScannedForTheTruth(), 0);
}

// A process that ends with what `action` returns.
pid_t StartProcess(const std::function<int()>& action) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(action());
  return child;
}

int ExitCodeOf(pid_t child) {
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(ScanCacheTest, OfProcessesThatStartTogetherOneScans) {
  for (int round = 0; round < 5; ++round) {
    fs::remove_all(options_.dir);
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) {
      children.push_back(StartProcess([&] { return static_cast<int>(Scan().cost.headers); }));
    }
    int headers = 0;
    for (const pid_t child : children) headers += ExitCodeOf(child);
    EXPECT_EQ(headers, kRecordsOfSet);
  }
  EXPECT_EQ(ScannedForTheTruth(), 0);
}

// The lock goes with its holder, and what it had begun is nothing.
TEST_F(ScanCacheTest, AProcessThatIsKilledHoldsNobodyUp) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = StartProcess([&] {
    const PrivateDirectory directory(options_.dir);
    std::vector<support::Descriptor> locks;
    for (const char digit : std::string("0123456789abcdef")) {
      locks.push_back(*directory.Lock(std::string("lock-") + digit, std::chrono::milliseconds(0)));
    }
    const bool logged = ::write(pipe[1], "x", 1) == 1;
    while (logged) ::pause();
    return 1;
  });
  char byte = 0;
  ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
  ::kill(child, SIGKILL);
  EXPECT_EQ(ExitCodeOf(child), -1);
  EXPECT_EQ(ScannedForTheTruth(), 3);
  EXPECT_EQ(ScannedForTheTruth(), 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_F(ScanCacheTest, SixteenSetsAreKept) {
  for (int set = 0; set < 20; ++set) ScanSet(Open(), std::to_string(set), 1, options_);
  int kept = 0;
  for (const auto& entry : fs::directory_iterator(options_.dir)) {
    if (entry.path().filename().string().starts_with("scan-")) ++kept;
  }
  EXPECT_EQ(kept, 16);
}

TEST_F(ScanCacheTest, ADataSetIsTheSameWithIt) {
  const auto read_all = [&](const DataSet& set) {
    std::vector<std::string> records;
    std::vector<std::uint8_t> buffer;
    for (std::int64_t i = 0; i < set.records(); ++i) {
      const auto data = set.Read(i, buffer);
      records.emplace_back(data.begin(), data.end());
    }
    return records;
  };
  const DataSet without(dir_.path(), "", Split::kTrain, 1);
  const DataSet first(dir_.path(), "", Split::kTrain, 1, {}, options_);
  const DataSet second(dir_.path().string() + "/.", "", Split::kTrain, 1, {}, options_);
  EXPECT_EQ(without.scan_cost().headers, kRecordsOfSet);
  EXPECT_EQ(first.scan_cost().headers, kRecordsOfSet);
  EXPECT_EQ(second.scan_cost().headers, 0);
  EXPECT_EQ(read_all(first), read_all(without));
  EXPECT_EQ(read_all(second), read_all(without));
  EXPECT_EQ(second.items(), without.items());
}

TEST_F(ScanCacheTest, TheManifestIsComparedWithWhatIsKept) {
  MakeShardManifest(dir_.path(), true, 1);
  for (int i = 0; i < 2; ++i) DataSet(dir_.path(), "", Split::kTrain, 1, {}, options_);
  const std::string complaint = " has other records than those, or in another order,";
  const auto rejection = [&] {
    return DataErrorOf([&] { DataSet(dir_.path(), "", Split::kTrain, 1, {}, options_); });
  };
  WriteRecords(paths_[1], {"ccc", "bb"});
  EXPECT_THAT(rejection(), StartsWith(paths_[1] + complaint));
  // Kept by now, and refused all the same.
  EXPECT_THAT(rejection(), StartsWith(paths_[1] + complaint));
}

TEST_F(ScanCacheTest, WithIndexFilesNothingIsScannedOrKept) {
  MakeIndexFiles(dir_.path(), dir_ / "index", 1);
  const DataSet set(dir_.path(), dir_ / "index", Split::kTrain, 1, {}, options_);
  EXPECT_EQ(set.scan_cost().files, 3);
  EXPECT_EQ(set.scan_cost().headers, 0);
  EXPECT_GT(set.scan_cost().seconds, 0);
  EXPECT_FALSE(fs::exists(options_.dir));
}

TEST(ScanCost, AddsUp) {
  ScanCost sum = {1, 2, 3, 4, 0.5, ""};
  sum += {10, 20, 30, 40, 0.25, "why"};
  sum += {0, 0, 0, 0, 0, "another"};
  EXPECT_EQ(sum.files, 11);
  EXPECT_EQ(sum.scanned, 22);
  EXPECT_EQ(sum.headers, 33);
  EXPECT_EQ(sum.bytes, 44U);
  EXPECT_EQ(sum.seconds, 0.75);
  EXPECT_EQ(sum.note, "why");
}

}  // namespace
}  // namespace trainer
