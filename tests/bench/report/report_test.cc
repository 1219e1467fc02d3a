// SPDX-License-Identifier: Apache-2.0

#include "bench/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/report/report_test_folder.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class MakeReportTest : public ReportFolderTest {
 protected:
  void SetUp() override {
    ReportFolderTest::SetUp();
    WriteRun("one", 1, 50);
    WriteRun("two", 2, 95);
    options_.runs = {(folder_ / "one").string(), (folder_ / "two").string()};
  }

  void WriteRun(const std::string& name, int ranks, double speed) {
    std::string log = LoggedOptions(R"("batch_size": 8, "data_dir": "<data>")") +
                      LoggedRun(R"("program": "ddltraind 0.1.0", "backend": "cpu: oneDNN", )"
                                R"("ranks": )" +
                                std::to_string(ranks));
    for (int step = 20; step < 90; ++step) {
      log += LoggedSpeed(step, std::to_string(speed + step % 3), std::to_string(7 - 0.01 * step));
    }
    log += Logged(R"("type": "LOG", "step": [], "data": {"top1_accuracy": 0.5})");
    Write(name + "/log.json", log);
  }

  ReportTexts Make() { return MakeReport(options_, "0.1.0", complaints_); }
  std::string RefusalOf() {
    try {
      Make();
    } catch (const trainer::Error& error) {
      EXPECT_EQ(error.exit_code(), EX_USAGE);
      return error.what();
    }
    return "";
  }

  ReportOptions options_;
};

TEST_F(MakeReportTest, IsAPageByDefault) {
  const ReportTexts texts = Make();
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(texts.page_path, "report.html");
  EXPECT_EQ(texts.printed, "");
  for (const char* id :
       {"throughput", "loss", "scaling", "efficiency", "run-differences", "accuracy"}) {
    EXPECT_THAT(texts.page, HasSubstr("<svg id=\"" + std::string(id) + "\""));
  }
  EXPECT_THAT(texts.page, HasSubstr("<h1>2 trainings</h1>"));
  EXPECT_THAT(texts.page, HasSubstr("cpu: oneDNN"));
  EXPECT_THAT(texts.page, HasSubstr("&lt;data&gt;"));
  EXPECT_THAT(texts.page, Not(HasSubstr("<data>")));
}

TEST_F(MakeReportTest, IsTextOrJsonWhereThatIsAskedFor) {
  options_.text = true;
  EXPECT_THAT(Make().printed, HasSubstr("# Scaling"));
  EXPECT_EQ(Make().page_path, "");
  options_.output = "page.html";
  EXPECT_EQ(Make().page_path, "page.html");
  EXPECT_THAT(Make().page, HasSubstr("</html>"));
  options_.text = false;
  options_.json = true;
  EXPECT_THAT(Make().printed, HasSubstr("\"efficiency\": 0.9"));
}

TEST_F(MakeReportTest, ShowsTheRestWhereARunCannotBeRead) {
  options_.runs.push_back((folder_ / "nowhere").string());
  Write("bad/log.json", "DLLL {\n");
  options_.runs.push_back((folder_ / "bad").string());
  const ReportTexts texts = Make();
  EXPECT_EQ(complaints_.exit_code(), EX_NOINPUT);
  EXPECT_THAT(texts.page, HasSubstr("3 messages about the files"));
  EXPECT_THAT(texts.page, HasSubstr("nowhere: there is no such folder"));
  EXPECT_THAT(texts.page, HasSubstr("<svg id=\"scaling\""));
}

TEST_F(MakeReportTest, IsNothingWithoutARun) {
  options_.runs = {(folder_ / "nowhere").string()};
  const ReportTexts texts = Make();
  EXPECT_EQ(texts.page_path, "");
  EXPECT_EQ(texts.printed, "");
  EXPECT_THAT(told_, ElementsAre(HasSubstr("nowhere: there is no such folder")));
}

TEST_F(MakeReportTest, ComparesWithTheBaseline) {
  options_.text = true;
  options_.baseline = "two";
  EXPECT_THAT(Make().printed, HasSubstr("  one  two "));
  options_.baseline = options_.runs[1] + "/";
  EXPECT_THAT(Make().printed, HasSubstr("  one  two "));
  options_.baseline = "tow";
  EXPECT_THAT(RefusalOf(), HasSubstr("--baseline=tow is none of the runs; did you mean two?"));
}

TEST_F(MakeReportTest, RefusesOptionsThatMakeNoSense) {
  options_.text = options_.json = true;
  EXPECT_THAT(RefusalOf(), HasSubstr("--text and --json both write standard output"));
  options_.json = false;
  options_.skip_steps = -1;
  EXPECT_THAT(RefusalOf(), HasSubstr("--skip_steps must be 0 or more"));
}

TEST_F(MakeReportTest, LeavesOutSteps) {
  options_.json = true;
  options_.skip_steps = 60;
  EXPECT_THAT(Make().printed, HasSubstr("\"steps\": 10,"));
}

}  // namespace
}  // namespace bench
