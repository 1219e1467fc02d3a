// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/tfrecord.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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
    return ReadText(path_);
  }
  std::string ScanError(const std::string& bytes) {
    WriteText(path_, bytes);
    return DataErrorOf([&] { RecordFile(path_, true).Scan(); });
  }

  TempDir dir_;
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

TEST_F(TfRecord, AFileThatBecomesShorterIsRefused) {
  GoodBytes();
  const RecordFile file(path_, true);
  std::filesystem::resize_file(path_, 37 + 3016 - 2);
  EXPECT_THAT(DataErrorOf([&] { file.Scan(); }),
              EndsWith("record at offset 37: the file became shorter while it was in use"));
}

// The layout of the format's page; the checksum is that of RFC 3720's 32 zero bytes, masked.
TEST_F(TfRecord, WritesLengthChecksumDataChecksum) {
  WriteRecords(path_, {std::string(32, '\0')});
  const std::string bytes = ReadText(path_);
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
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

TEST_F(TfRecord, RefusesFileThatEndsWithinARecord) {
  const std::string bytes = GoodBytes();
  const std::string message = ScanError(bytes.substr(0, bytes.size() - 1));
  EXPECT_THAT(message, StartsWith(path_ + ", record at offset 37: "));
  EXPECT_THAT(message, HasSubstr("3000 bytes of data but only 3003 bytes of the file follow"));
}

TEST_F(TfRecord, RefusesFileThatEndsWithinAHeader) {
  EXPECT_EQ(ScanError(GoodBytes().substr(0, 30)),
            path_ +
                ", record at offset 21: the file ends within the record's header: it is truncated "
                "or not a TFRecord");
}

TEST_F(TfRecord, RefusesDamagedLength) {
  std::string bytes = GoodBytes();
  bytes[21] ^= 1;
  EXPECT_EQ(ScanError(bytes), path_ +
                                  ", record at offset 21: the checksum of the length is wrong: the "
                                  "file is damaged or not a TFRecord");
}

TEST_F(TfRecord, RefusesText) {
  EXPECT_THAT(ScanError("this is a text, not a record file\n"), EndsWith("or not a TFRecord"));
}

// As TFRecordOptions("GZIP") of TensorFlow writes them.
TEST_F(TfRecord, RefusesCompressedFiles) {
  const std::string gzip = std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10) + "compressed";
  EXPECT_EQ(ScanError(gzip), path_ +
                                 ", record at offset 0: the file is compressed: unpack it with "
                                 "gunzip first");
  EXPECT_THAT(ScanError(GoodBytes().substr(0, 21) + gzip), EndsWith("or not a TFRecord"));
}

TEST_F(TfRecord, RefusesDamagedData) {
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

TEST_F(TfRecord, RefusesPlaceThatIsNoRecord) {
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

TEST_F(TfRecord, RefusesFileThatShrank) {
  GoodBytes();
  const RecordFile file(path_, true);
  const auto places = file.Scan();
  std::filesystem::resize_file(path_, 40);
  EXPECT_THAT(DataErrorOf([&] { ReadOne(file, places[2]); }), HasSubstr("became shorter"));
}

TEST_F(TfRecord, RefusesMissingFileAndDirectory) {
  EXPECT_EQ(DataErrorOf([&] { RecordFile(path_, true); }),
            "cannot open " + path_ + ": No such file or directory");
  EXPECT_EQ(DataErrorOf([&] { RecordFile(dir_.path(), true); }),
            dir_.path() + " is not a regular file");
}

}  // namespace
}  // namespace trainer
