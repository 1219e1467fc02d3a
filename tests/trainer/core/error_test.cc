// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(Error, CarriesItsExitCode) {
  const Error error(EX_DATAERR, "train-00001: bad record");
  EXPECT_EQ(error.exit_code(), EX_DATAERR);
  EXPECT_STREQ(error.what(), "train-00001: bad record");
}

TEST(Error, OsErrorNamesActionAndReason) {
  const Error error = OsError("open /data/train-00000", ENOENT);
  EXPECT_EQ(error.exit_code(), EX_OSERR);
  EXPECT_STREQ(error.what(), "open /data/train-00000: No such file or directory");
}

TEST(Check, NamesFileLineAndCondition) {
  const int answer = 41;
  try {
    DDL_CHECK(answer == 42);
    FAIL() << "the check passed";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_SOFTWARE);
    EXPECT_THAT(error.what(), HasSubstr("error_test.cc:"));
    EXPECT_THAT(error.what(), HasSubstr("answer == 42"));
  }
}

TEST(Check, PassesSilently) { EXPECT_NO_THROW(DDL_CHECK(1 + 1 == 2)); }

}  // namespace
}  // namespace trainer
