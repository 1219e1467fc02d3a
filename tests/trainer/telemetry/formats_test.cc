// SPDX-License-Identifier: Apache-2.0

#include <stdlib.h>
#include <time.h>

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "trainer/core/error.h"
#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/telemetry/text/python_format.h"

namespace trainer {
namespace {

TEST(PythonFloat, PrintsWhatReprPrints) {
  const struct {
    double value;
    const char* text;
  } cases[] = {{0.0, "0.0"},
               {-0.0, "-0.0"},
               {1.0, "1.0"},
               {-2.5, "-2.5"},
               {365.1, "365.1"},
               {100.0, "100.0"},
               {0.1, "0.1"},
               {0.0001, "0.0001"},
               {0.00012345, "0.00012345"},
               {0.00001, "1e-05"},
               {3.0517578125e-05, "3.0517578125e-05"},
               {1e15, "1000000000000000.0"},
               {123456789012345.5, "123456789012345.5"},
               {1e16, "1e+16"},
               {1.5e300, "1.5e+300"},
               {5e-324, "5e-324"},
               {1.0 / 3, "0.3333333333333333"},
               {4526.812526349517, "4526.812526349517"},
               {std::numeric_limits<double>::infinity(), "inf"},
               {-std::numeric_limits<double>::infinity(), "-inf"},
               {std::nan(""), "nan"}};
  for (const auto& test : cases) EXPECT_EQ(PythonFloat(test.value), test.text);
}

TEST(PythonJson, PrintsWhatJsonDumpsPrints) {
  EXPECT_EQ(PythonJson(true), "true");
  EXPECT_EQ(PythonJson(std::int64_t{-7}), "-7");
  EXPECT_EQ(PythonJson(std::uint64_t{18446744073709551615U}), "18446744073709551615");
  EXPECT_EQ(PythonJson(std::nan("")), "NaN");
  EXPECT_EQ(PythonJson(-std::numeric_limits<double>::infinity()), "-Infinity");
  EXPECT_EQ(PythonJson("a\"\\\n\xc3\xa9"), "\"a\\\"\\\\\\n\\u00e9\"");
}

TEST(PythonString, PrintsWhatStrPrints) {
  EXPECT_EQ(PythonString(false), "False");
  EXPECT_EQ(PythonString(1e-5), "1e-05");
  EXPECT_EQ(PythonString("a b"), "a b");
}

class ClockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TZ", "XYZ-1:30", 1);  // an hour and a half east
    ::tzset();
  }
  void TearDown() override {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  TimePoint time_{std::chrono::microseconds(1605627653000001)};
};

TEST_F(ClockTest, PrintsEachForm) {
  EXPECT_EQ(UnixSeconds(time_, 9), "1605627653.000001000");
  EXPECT_EQ(UnixSeconds(time_, 3), "1605627653.000");
  EXPECT_EQ(IsoTime(time_), "2020-11-17T17:10:53+01:30");
  EXPECT_EQ(PythonDatetime(time_), "2020-11-17 17:10:53.000001");
}

TEST(FormatDuration, PrintsHoursAndDays) {
  EXPECT_EQ(FormatDuration(0), "0:00:00");
  EXPECT_EQ(FormatDuration(2527.4), "0:42:07");
  EXPECT_EQ(FormatDuration(86399), "23:59:59");
  EXPECT_EQ(FormatDuration(2 * 86400 + 3 * 3600 + 4 * 60 + 5), "2d 03:04:05");
  EXPECT_EQ(FormatDuration(-1), "?");
  EXPECT_EQ(FormatDuration(std::numeric_limits<double>::quiet_NaN()), "?");
  EXPECT_EQ(FormatDuration(std::numeric_limits<double>::infinity()), "?");
}

TEST(Log, PrefixesTimeRankAndLevel) {
  std::ostringstream out;
  const Logger log = MakeLogger(out, 3, "info");
  log->warn("the {} is full", "disk");
  log->debug("not shown");
  EXPECT_THAT(out.str(),
              MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}"
                           "[+-][0-9]{2}:[0-9]{2} [[]rank 3[]] warning: the disk is full\n"));
}

TEST(Log, ShowsWhatItsLevelAllows) {
  std::ostringstream out;
  MakeLogger(out, 0, "off")->error("not shown");
  EXPECT_EQ(out.str(), "");
  MakeLogger(out, 0, "debug")->debug("shown");
  EXPECT_THAT(out.str(), HasSubstr("debug: shown"));
}

TEST(Log, RejectsALevelItDoesNotKnow) {
  std::ostringstream out;
  EXPECT_THAT(tests::Rejection<Error>(EX_USAGE, [&] { MakeLogger(out, 0, "loud"); }),
              HasSubstr("'loud' is not a log level: give debug, info"));
}

}  // namespace
}  // namespace trainer
