// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/tfrecord.h"

#include <sys/stat.h>

#include "tests/support/other_user.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"
#include "trainer/core/crc32c.h"
#include "trainer/data/files/scan_cache.h"

namespace trainer {
namespace {

std::string RejectionOfRecordIndex(const std::string& text, std::uint64_t data_bytes) {
  return DataErrorOf([&] { ParseIndex(text, "idx/train-0", data_bytes); });
}

TEST(RecordIndex, ReadsWhatItWrites) {
  const std::string text = "0 21\n21 16\n37 3016\n";
  const auto places = ParseIndex(text, "idx", 3053);
  EXPECT_THAT(places, ElementsAre(RecordPlace{0, 21}, RecordPlace{21, 16}, RecordPlace{37, 3016}));
  EXPECT_EQ(FormatIndex(places), text);
}

TEST(RecordIndex, LastLineNeedsNoNewline) {
  EXPECT_THAT(ParseIndex("0 21", "idx", 21), ElementsAre(RecordPlace{0, 21}));
}

TEST(RecordIndex, RejectsLinesThatAreNotTwoNumbers) {
  for (const char* line : {"", "21", "0 21 ", "0  21", "a b", "-0 21", "0 99999999999999999999"}) {
    EXPECT_THAT(RejectionOfRecordIndex("0 20\n" + std::string(line) + "\n", 41),
                StartsWith("idx/train-0:2: expected \"OFFSET SIZE\""))
        << line;
  }
}

TEST(RecordIndex, RejectsGapsOverlapsAndRecordsThatAreTooShort) {
  EXPECT_EQ(
      RejectionOfRecordIndex("0 21\n22 16\n", 38),
      "idx/train-0:2: a record of 16 bytes at offset 22 does not fit: 21 of the data file's 38 "
      "bytes are taken by the lines before; make a new index with: ddldata index DATA_DIR "
      "INDEX_DIR");
  EXPECT_THAT(RejectionOfRecordIndex("0 21\n20 17\n", 37),
              StartsWith("idx/train-0:2: a record of 17 bytes"));
  EXPECT_THAT(RejectionOfRecordIndex("0 15\n", 15),
              StartsWith("idx/train-0:1: a record of 15 bytes"));
}

TEST(RecordIndex, RejectsIndexOfAFileOfAnotherSize) {
  EXPECT_THAT(RejectionOfRecordIndex("0 21\n", 20),
              StartsWith("idx/train-0:1: a record of 21 bytes"));
  EXPECT_THAT(
      RejectionOfRecordIndex("0 21\n", 37),
      StartsWith("idx/train-0:2: the index ends at byte 21 but the data file has 37 bytes"));
  EXPECT_THAT(RejectionOfRecordIndex("", 37),
              StartsWith("idx/train-0:1: the index ends at byte 0"));
  EXPECT_THAT(RejectionOfRecordIndex("0 18446744073709551615\n", 37),
              StartsWith("idx/train-0:1: a record of 1844"));
}

std::string ReadOne(const RecordFile& file, const RecordPlace& place) {
  std::vector<std::uint8_t> buffer;
  const auto data = file.Read(place, buffer);
  return {data.begin(), data.end()};
}

class TfRecord : public ::testing::Test {
 protected:
  // The bytes of a file with the records "first", "" and 3000 times 'x'.
  std::string GoodBytes() {
    WriteRecords(path_, {"first", "", std::string(3000, 'x')});
    return tests::TextOf(path_);
  }
  std::string ScanError(const std::string& bytes) {
    WriteText(path_, bytes);
    return DataErrorOf([&] { RecordFile(path_, true).Scan(); });
  }

  TemporaryDirectory dir_;
  std::string path_ = dir_ / "train-00000-of-00001";
};

TEST_F(TfRecord, GivesBackWhatWasWritten) {
  GoodBytes();
  for (const bool keep_open : {true, false}) {
    const RecordFile file(path_, keep_open);
    const auto places = file.Scan();
    ASSERT_THAT(places,
                ElementsAre(RecordPlace{0, 21}, RecordPlace{21, 16}, RecordPlace{37, 3016}));
    EXPECT_EQ(ReadOne(file, places[0]), "first");
    EXPECT_EQ(ReadOne(file, places[1]), "");
    EXPECT_EQ(ReadOne(file, places[2]), std::string(3000, 'x'));
  }
}

TEST_F(TfRecord, AScanHasTheChecksumOfAllRecordsByAReadForEach) {
  GoodBytes();
  for (const bool keep_open : {true, false}) {
    const RecordFile file(path_, keep_open);
    const RecordScan scan = file.ScanWithChecksum();
    EXPECT_THAT(scan.places,
                ElementsAre(RecordPlace{0, 21}, RecordPlace{21, 16}, RecordPlace{37, 3016}));
    EXPECT_EQ(scan.checksum, file.ChecksumOf(scan.places));
    EXPECT_EQ(scan.bytes_read, 3 * 16U);
  }
  WriteText(path_, "");
  EXPECT_EQ(RecordFile(path_, true).ScanWithChecksum(), RecordScan{});
}

TEST_F(TfRecord, AFileThatBecomesShorterIsRejected) {
  GoodBytes();
  const RecordFile file(path_, true);
  fs::resize_file(path_, 37 + 3016 - 2);
  EXPECT_THAT(DataErrorOf([&] { file.Scan(); }),
              EndsWith("record at offset 37: the file became shorter while it was in use"));
}

// The layout of the format's page; the checksum is that of RFC 3720's 32 zero bytes, masked.
TEST_F(TfRecord, WritesLengthChecksumDataChecksum) {
  WriteRecords(path_, {std::string(32, '\0')});
  const std::string bytes = tests::TextOf(path_);
  ASSERT_EQ(bytes.size(), 48U);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x20\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(bytes.substr(44), "\xfa\xff\xd7\x0f");  // 0x6d551522 + 0xa282ead8, little-endian
}

TEST_F(TfRecord, FileWithoutCommitLeavesNothing) {
  {
    RecordWriter writer(path_);
    writer.Append(AsBytes("data"));
    writer.Finish();
  }
  EXPECT_TRUE(fs::is_empty(dir_.path()));
}

TEST_F(TfRecord, RejectsFileThatEndsWithinARecord) {
  const std::string bytes = GoodBytes();
  const std::string message = ScanError(bytes.substr(0, bytes.size() - 1));
  EXPECT_THAT(message, StartsWith(path_ + ", record at offset 37: "));
  EXPECT_THAT(message, HasSubstr("3000 bytes of data but only 3003 bytes of the file follow"));
}

TEST_F(TfRecord, RejectsFileThatEndsWithinAHeader) {
  EXPECT_EQ(ScanError(GoodBytes().substr(0, 30)),
            path_ +
                ", record at offset 21: the file ends within the record's header: it is truncated "
                "or not a TFRecord");
}

TEST_F(TfRecord, RejectsDamagedLength) {
  std::string bytes = GoodBytes();
  bytes[21] ^= 1;
  EXPECT_EQ(ScanError(bytes), path_ +
                                  ", record at offset 21: the checksum of the length is wrong: the "
                                  "file is damaged or not a TFRecord");
}

TEST_F(TfRecord, RejectsText) {
  EXPECT_THAT(ScanError("this is a text, not a record file\n"), EndsWith("or not a TFRecord"));
}

TEST_F(TfRecord, NamesOtherKindsOfFiles) {
  std::string tar(1024, '\0');
  tar.replace(0, 9, "cat/0.jpg");
  tar.replace(257, 5, "ustar");
  EXPECT_EQ(ScanError(tar), path_ +
                                ", record at offset 0: the file is a tar: data files are made "
                                "of it with: ddldata convert");
  EXPECT_THAT(ScanError("PK\x03\x04 0123456789"), HasSubstr("the file is a ZIP archive"));
  EXPECT_THAT(ScanError("PAR1 0123456789"), HasSubstr("the file is Parquet"));
  // Behind the beginning it is a damaged record, also where a length begins as gzip does.
  WriteRecords(path_, {std::string(0x8b1f, 'x')});
  EXPECT_THAT(ScanError(tests::TextOf(path_) + tar), EndsWith("or not a TFRecord"));
}

// As TFRecordOptions("GZIP") of TensorFlow writes them.
TEST_F(TfRecord, RejectsCompressedFiles) {
  const std::string gzip = std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10) + "compressed";
  EXPECT_EQ(ScanError(gzip), path_ +
                                 ", record at offset 0: the file is compressed: unpack it with "
                                 "gunzip first");
  EXPECT_THAT(ScanError(GoodBytes().substr(0, 21) + gzip), EndsWith("or not a TFRecord"));
}

TEST_F(TfRecord, RejectsDamagedData) {
  std::string bytes = GoodBytes();
  bytes[100] ^= 0x10;
  WriteText(path_, bytes);
  const RecordFile file(path_, true);
  const auto places = file.Scan();
  EXPECT_EQ(ReadOne(file, places[0]), "first");
  EXPECT_EQ(
      DataErrorOf([&] { ReadOne(file, places[2]); }),
      path_ + ", record at offset 37: the checksum of the data is wrong: the file is damaged");
}

TEST_F(TfRecord, RejectsPlaceThatIsNoRecord) {
  GoodBytes();
  const RecordFile file(path_, true);
  EXPECT_THAT(DataErrorOf([&] {
                ReadOne(file, {1, 20});
              }),
              HasSubstr("no record of 20 bytes begins here"));
  EXPECT_THAT(DataErrorOf([&] {
                ReadOne(file, {0, 37});
              }),
              HasSubstr("no record of 37 bytes begins here"));
}

TEST_F(TfRecord, RejectsFileThatShrank) {
  GoodBytes();
  const RecordFile file(path_, true);
  const auto places = file.Scan();
  fs::resize_file(path_, 40);
  EXPECT_THAT(DataErrorOf([&] { ReadOne(file, places[2]); }), HasSubstr("became shorter"));
}

TEST_F(TfRecord, RejectsMissingFileAndDirectory) {
  EXPECT_EQ(DataErrorOf([&] { RecordFile(path_, true); }),
            "cannot open " + path_ + ": No such file or directory");
  EXPECT_EQ(DataErrorOf([&] { RecordFile(dir_.path(), true); }),
            dir_.path().string() + " is not a regular file");
}

constexpr std::chrono::milliseconds kAtOnce{0};

class PrivateDirectoryTest : public ::testing::Test {
 protected:
  std::string Rejection() const {
    return tests::Rejection<Error>(EX_OSERR, [&] { PrivateDirectory directory(path_); });
  }

  static std::string ReadFrom(const PrivateDirectory& directory, const std::string& name,
                              std::uint64_t max_bytes = 100) {
    const auto bytes = directory.Read(name, max_bytes);
    return bytes ? std::string(bytes->begin(), bytes->end()) : "nothing";
  }

  TemporaryDirectory dir_;
  const std::string path_ = dir_ / "own";
};

TEST_F(PrivateDirectoryTest, IsMadeForThisUserAlone) {
  const mode_t before = ::umask(0);
  PrivateDirectory directory(path_);
  directory.Write("a", "one");
  ::umask(before);
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(path_ + "/a").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(ReadFrom(PrivateDirectory(path_), "a"), "one");
}

TEST_F(PrivateDirectoryTest, IsRejectedWhereOthersMayHaveBeen) {
  fs::create_directory(path_);
  ::chmod(path_.c_str(), 0755);
  EXPECT_THAT(Rejection(), HasSubstr(path_ + ": it is open to others: chmod 700"));
  ::chmod(path_.c_str(), 0701);
  EXPECT_THAT(Rejection(), HasSubstr("open to others"));
  ::chmod(path_.c_str(), 0700);
  EXPECT_EQ(Rejection(), "");
}

TEST_F(PrivateDirectoryTest, IsRejectedWhereItIsAnotherUsers) {
  if (!tests::HasOtherUsers()) GTEST_SKIP() << "only root can give a directory to another user";
  fs::create_directory(path_);
  ::chmod(path_.c_str(), 0700);
  ASSERT_EQ(::chown(path_.c_str(), tests::kNobody, tests::kNobody), 0);
  EXPECT_THAT(Rejection(), HasSubstr(path_ + ": it is of another user"));
}

TEST_F(PrivateDirectoryTest, IsNoLinkAndNoFile) {
  fs::create_directory(dir_ / "elsewhere");
  ::chmod((dir_ / "elsewhere").c_str(), 0700);
  fs::create_directory_symlink(dir_ / "elsewhere", path_);
  EXPECT_THAT(Rejection(), HasSubstr("cannot open the directory " + path_));
  fs::remove(path_);
  WriteText(path_, "a file");
  EXPECT_THAT(Rejection(), HasSubstr("cannot open the directory " + path_));
}

TEST_F(PrivateDirectoryTest, NeedsTheDirectoryAbove) {
  EXPECT_EQ(::access(path_.c_str(), F_OK), -1);
  const std::string deep = path_ + "/deeper";
  EXPECT_THROW(PrivateDirectory directory(deep), Error);
}

TEST_F(PrivateDirectoryTest, ReadsPlainFilesOfThisUserUpToALimit) {
  const PrivateDirectory directory(path_);
  EXPECT_EQ(ReadFrom(directory, "none"), "nothing");
  directory.Write("a", "12345");
  EXPECT_EQ(ReadFrom(directory, "a", 5), "12345");
  EXPECT_EQ(ReadFrom(directory, "a", 4), "nothing");
  fs::create_symlink("a", path_ + "/link");
  EXPECT_EQ(ReadFrom(directory, "link"), "nothing");
  ASSERT_EQ(::mkfifo((path_ + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadFrom(directory, "pipe"), "nothing");
  fs::create_directory(path_ + "/folder");
  EXPECT_EQ(ReadFrom(directory, "directory"), "nothing");
  if (tests::HasOtherUsers()) {
    ASSERT_EQ(::chown((path_ + "/a").c_str(), tests::kNobody, tests::kNobody), 0);
    EXPECT_EQ(ReadFrom(directory, "a"), "nothing");
  }
}

TEST_F(PrivateDirectoryTest, WritesWhole) {
  const PrivateDirectory directory(path_);
  directory.Write("a", "old and long");
  WriteText(path_ + "/.a.tmp", "of a process that was killed");
  directory.Write("a", "new");
  EXPECT_EQ(ReadFrom(directory, "a"), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), fs::directory_iterator()), 1);
  // Where it cannot have its name, nothing is left.
  fs::create_directory(path_ + "/b");
  EXPECT_THROW(directory.Write("b", "x"), Error);
  EXPECT_FALSE(fs::exists(path_ + "/.b.tmp"));
}

TEST_F(PrivateDirectoryTest, KeepsTheNewestFiles) {
  const PrivateDirectory directory(path_);
  const auto now = fs::file_time_type::clock::now();
  int age = 0;
  for (const char* name : {"x-new", "x-older", "x-oldest", "other"}) {
    directory.Write(name, name);
    fs::last_write_time(path_ + "/" + name, now - std::chrono::hours(++age));
  }
  directory.Prune("x-", 3);
  EXPECT_TRUE(fs::exists(path_ + "/x-oldest"));
  directory.Prune("x-", 2);
  EXPECT_FALSE(fs::exists(path_ + "/x-oldest"));
  EXPECT_TRUE(fs::exists(path_ + "/x-older"));
  EXPECT_TRUE(fs::exists(path_ + "/other"));
}

TEST_F(PrivateDirectoryTest, HasLocksOfWhichOneHolderHasEach) {
  const PrivateDirectory directory(path_);
  auto held = directory.Lock("lock-1", kAtOnce);
  ASSERT_TRUE(held);
  EXPECT_FALSE(directory.Lock("lock-1", kAtOnce));
  EXPECT_TRUE(directory.Lock("lock-2", kAtOnce));
  held.reset();
  EXPECT_TRUE(directory.Lock("lock-1", kAtOnce));
}

TEST_F(PrivateDirectoryTest, HasNoLockInPlaceOfALink) {
  const PrivateDirectory directory(path_);
  fs::create_symlink(dir_ / "target", path_ + "/lock-1");
  EXPECT_FALSE(directory.Lock("lock-1", kAtOnce));
  EXPECT_FALSE(fs::exists(dir_ / "target"));
}

constexpr char kSetOfScans[] = "node1 /data train-";

std::vector<ScannedFile> SomeScans() {
  return {{"train-0", {1, 2, 100, 3, 4}, {{{0, 40}, {40, 60}}, 0x12345678, 0}},
          {"train-1", {1, 5, 16, -1, 1'800'000'000'000'000'001}, {{{0, 16}}, 7, 0}}};
}

std::optional<std::vector<ScannedFile>> ParseScansOf(const std::string& bytes) {
  return ParseScans(AsBytes(bytes), kSetOfScans);
}

// `bytes` with the checksum that belongs to them.
std::string WithChecksum(std::string bytes) {
  constexpr std::size_t kAt = 17;
  const std::uint32_t checksum = Crc32c(std::as_bytes(std::span(bytes).subspan(kAt + 4)));
  for (std::size_t i = 0; i < 4; ++i) bytes[kAt + i] = static_cast<char>(checksum >> (8 * i));
  return bytes;
}

TEST(ScanFile, IsReadBack) {
  EXPECT_EQ(ParseScansOf(FormatScans(kSetOfScans, SomeScans())), SomeScans());
  EXPECT_EQ(ParseScansOf(FormatScans(kSetOfScans, {})), std::vector<ScannedFile>{});
}

TEST(ScanFile, HasTheLayoutOfItsHeader) {
  const std::string bytes = FormatScans("s", {{{"f", {1, 2, 16, 3, 4}, {{{0, 16}}, 5, 0}}}});
  EXPECT_EQ(bytes.substr(0, 17), "ddltraind scan 1\n");
  const std::string expected(
      "\1\0\0\0s"
      "\1\0\0\0"
      "\1\0\0\0f"
      "\1\0\0\0\0\0\0\0"
      "\2\0\0\0\0\0\0\0"
      "\20\0\0\0\0\0\0\0"
      "\3\0\0\0\0\0\0\0"
      "\4\0\0\0\0\0\0\0"
      "\5\0\0\0"
      "\1\0\0\0"
      "\20\0\0\0",
      66);
  EXPECT_EQ(bytes.substr(21), expected);
  EXPECT_EQ(bytes, WithChecksum(bytes));
}

TEST(ScanFile, IsOfOneSet) {
  const std::string bytes = FormatScans("node2 /data train-", SomeScans());
  EXPECT_EQ(ParseScansOf(bytes), std::nullopt);
}

TEST(ScanFile, IsNothingWithAByteChangedCutOffOrAdded) {
  const std::string bytes = FormatScans(kSetOfScans, SomeScans());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int turned : {1, 128, 255}) {
      std::string other = bytes;
      other[i] = static_cast<char>(other[i] ^ turned);
      EXPECT_EQ(ParseScansOf(other), std::nullopt) << i;
    }
    EXPECT_EQ(ParseScansOf(bytes.substr(0, i)), std::nullopt) << i;
  }
  EXPECT_EQ(ParseScansOf(bytes + '\0'), std::nullopt);
  EXPECT_EQ(ParseScansOf(WithChecksum(bytes + '\0')), std::nullopt);
}

// Whoever can write good checksums still cannot make records that do not fill their file.
TEST(ScanFile, IsNothingWhereRecordsDoNotFillTheFile) {
  for (const std::vector<RecordPlace>& places : {std::vector<RecordPlace>{{0, 40}, {40, 59}},
                                                 {{0, 40}, {40, 61}},
                                                 {{0, 15}, {15, 85}},
                                                 {}}) {
    std::vector<ScannedFile> files = SomeScans();
    files[0].scan.places = places;
    EXPECT_EQ(ParseScansOf(FormatScans(kSetOfScans, files)), std::nullopt);
  }
}

TEST(ScanFile, IsNothingWhereFilesAreDoubledOrOutOfOrder) {
  std::vector<ScannedFile> files = SomeScans();
  files[1].name = "train-0";
  EXPECT_EQ(ParseScansOf(FormatScans(kSetOfScans, files)), std::nullopt);
  files[1].name = "train";
  EXPECT_EQ(ParseScansOf(FormatScans(kSetOfScans, files)), std::nullopt);
}

// Numbers that promise more than there is, with good checksums.
TEST(ScanFile, IsNothingWhereCountsAreTooLarge) {
  const std::string bytes = FormatScans(kSetOfScans, SomeScans());
  const std::size_t behind_set = 21 + 4 + sizeof(kSetOfScans) - 1;
  for (const std::size_t at : {std::size_t{21}, behind_set, behind_set + 4}) {
    std::string other = bytes;
    other.replace(at, 4, "\xff\xff\xff\xff");
    EXPECT_EQ(ParseScansOf(WithChecksum(other)), std::nullopt) << at;
  }
}

TEST(ScanFile, DoesNotKeepRecordsOf4GiB) {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 32;
  EXPECT_TRUE(KeepsScan({{{0, kLimit - 1}}, 0, 0}));
  EXPECT_FALSE(KeepsScan({{{0, 16}, {16, kLimit}}, 0, 0}));
}

}  // namespace
}  // namespace trainer
