// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/rank_times_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/report/report_test_folder.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RankTimesTest : public ReportFolderTest {
 protected:
  static std::string Event(const std::string& name, const std::string& category, double duration,
                           int rank) {
    return "{\"name\": \"" + name + "\", \"cat\": \"" + category +
           "\", \"ph\": \"X\", \"ts\": 1.0, \"dur\": " + std::to_string(duration) +
           ", \"pid\": " + std::to_string(rank) + ", \"tid\": 1, \"args\": {\"step\": 7}},\n";
  }
};

TEST_F(RankTimesTest, AreMeansOverTheStepsOfATrace) {
  const auto path = Write(
      "trace.json",
      "{\"traceEvents\": [\n"
      "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": 0, \"args\": {\"name\": "
      "\"rank 1 on gpu025\"}},\n" +
          Event("step", "step", 3000, 1) + Event("forward", "phase", 1000, 1) +
          Event("backward", "phase", 1500, 1) + Event("step", "step", 5000, 1) +
          Event("forward", "phase", 3000, 1) + Event("image", "input", 9999, 1) +
          Event("all-reduce", "communication", 9999, 1) + Event("step", "step", 2000, 0) +
          "{\"name\": \"update\", \"cat\": \"phase\", \"dur\": 500, \"pid\": 0}\n"
          "], \"displayTimeUnit\": \"ms\"}\n");
  const auto times = ReadTrace(path, complaints_);
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times.at(1).host, "gpu025");
  EXPECT_EQ(times.at(1).steps, 2);
  EXPECT_DOUBLE_EQ(times.at(1).step, 0.004);
  EXPECT_DOUBLE_EQ(times.at(1).phases[1], 0.002);    // forward
  EXPECT_DOUBLE_EQ(times.at(1).phases[2], 0.00075);  // backward, in one of two steps
  EXPECT_DOUBLE_EQ(times.at(0).phases[4], 0.0005);
}

TEST_F(RankTimesTest, NameWhatIsWrongInATrace) {
  const auto path =
      Write("trace.json",
            Event("step", "step", 1, -3) + "{\"cat\": \"phase\"\n" + Event("step", "step", -1, 0) +
                "{\"cat\": \"phase\", \"pid\": 1e300}\n" + Event("step", "step", 1, 2));
  EXPECT_EQ(ReadTrace(path, complaints_).size(), 1U);
  EXPECT_THAT(
      told_,
      ElementsAre(HasSubstr("trace.json:1: its pid is no rank"), HasSubstr(":2: it is no event"),
                  HasSubstr(":3: its dur is no time"), HasSubstr(":4: it has no pid")));
  told_.clear();
  EXPECT_THAT(ReadTrace(Write("trace.json", "{}"), complaints_), IsEmpty());
  EXPECT_THAT(told_, ElementsAre(HasSubstr("trace.json: it has no step")));
  EXPECT_THROW(ReadTrace(folder_, complaints_), trainer::Error);
}

TEST_F(RankTimesTest, AreReadFromFilesForPrometheus) {
  std::map<int, RankTimes> times;
  ReadPrometheusFile(
      Write("ddltraind-rank-00003.prom",
            "# HELP ddltraind_step_seconds Mean time.\n"
            "ddltraind_running{rank=\"3\",host=\"gpu025\"} 1\n"
            "ddltraind_step_seconds{rank=\"3\",host=\"gpu025\"} 0.25\n"
            "ddltraind_phase_seconds{rank=\"3\",host=\"gpu025\",phase=\"input_wait\"} 0.05\n"
            "ddltraind_phase_seconds{rank=\"3\",host=\"gpu025\",phase=\"exposed_all_reduce\"} 0.1\n"
            "# EOF\n"),
      times, complaints_);
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times.at(3).host, "gpu025");
  EXPECT_EQ(times.at(3).step, 0.25);
  EXPECT_THAT(times.at(3).phases, ElementsAre(0.05, 0, 0, 0.1, 0));
}

TEST_F(RankTimesTest, HaveNoneOfARankWithoutSteps) {
  std::map<int, RankTimes> times;
  ReadPrometheusFile(Write("a.prom", "ddltraind_running{rank=\"3\",host=\"a\"} 1\n"), times,
                     complaints_);
  EXPECT_THAT(told_, IsEmpty());
  ReadPrometheusFile(Write("b.prom", "node_load1 0.5\n} {\n{rank=\"x\"} 1\n"), times, complaints_);
  EXPECT_THAT(told_, ElementsAre(HasSubstr("b.prom: it has no metric of ddltraind's")));
  EXPECT_THAT(times, IsEmpty());
}

}  // namespace
}  // namespace bench
