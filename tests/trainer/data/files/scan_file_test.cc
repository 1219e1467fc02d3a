// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/scan_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/trainer/data/data_fixture.h"
#include "trainer/core/crc32c.h"

namespace trainer {
namespace {

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
