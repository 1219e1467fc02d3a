// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/record_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

std::string RefusalOfRecordIndex(const std::string& text, std::uint64_t data_bytes) {
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

TEST(RecordIndex, RefusesLinesThatAreNotTwoNumbers) {
  for (const char* line : {"", "21", "0 21 ", "0  21", "a b", "-0 21", "0 99999999999999999999"}) {
    EXPECT_THAT(RefusalOfRecordIndex("0 20\n" + std::string(line) + "\n", 41),
                StartsWith("idx/train-0:2: expected \"OFFSET SIZE\""))
        << line;
  }
}

TEST(RecordIndex, RefusesGapsOverlapsAndRecordsThatAreTooShort) {
  EXPECT_EQ(
      RefusalOfRecordIndex("0 21\n22 16\n", 38),
      "idx/train-0:2: a record of 16 bytes at offset 22 does not fit: 21 of the data file's 38 "
      "bytes are taken by the lines before; make a new index with: ddldata index DATA_DIR "
      "INDEX_DIR");
  EXPECT_THAT(RefusalOfRecordIndex("0 21\n20 17\n", 37),
              StartsWith("idx/train-0:2: a record of 17 bytes"));
  EXPECT_THAT(RefusalOfRecordIndex("0 15\n", 15),
              StartsWith("idx/train-0:1: a record of 15 bytes"));
}

TEST(RecordIndex, RefusesIndexOfAFileOfAnotherSize) {
  EXPECT_THAT(RefusalOfRecordIndex("0 21\n", 20),
              StartsWith("idx/train-0:1: a record of 21 bytes"));
  EXPECT_THAT(
      RefusalOfRecordIndex("0 21\n", 37),
      StartsWith("idx/train-0:2: the index ends at byte 21 but the data file has 37 bytes"));
  EXPECT_THAT(RefusalOfRecordIndex("", 37), StartsWith("idx/train-0:1: the index ends at byte 0"));
  EXPECT_THAT(RefusalOfRecordIndex("0 18446744073709551615\n", 37),
              StartsWith("idx/train-0:1: a record of 1844"));
}

}  // namespace
}  // namespace trainer
