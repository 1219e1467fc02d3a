// SPDX-License-Identifier: Apache-2.0

#include "bench/report/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Document Sample() {
  Document document = {"Runs of <caf\xE9>", {}, {"a<b: cannot\x1B be read"}};
  Section section = {"speed", "Speed", "What it means.", {}, {}};
  section.tables.push_back(
      {"Speeds", {{"run", false}, {"images/s", true}}, {{"a&b", "12.5"}, {"longer", "1"}}, true});
  section.tables.push_back({"Long one", {{"run", false}}, {{"x"}}, false});
  section.figures.push_back({"plot",
                             "A plot",
                             BarChart{"ms", {"a"}, {{"r", {1}, "1"}}},
                             {"Its numbers", {{"r", false}, {"ms", true}}, {{"r", "1"}}, true}});
  document.sections.push_back(section);
  return document;
}

TEST(FormatHtml, IsAPageThatNeedsNothingElse) {
  const std::string html = FormatHtml(Sample(), "0.1.0");
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  for (const char* outside : {"<script", "http:", "https:", "url(", "@import", "<link", "<img"}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
  EXPECT_THAT(html, HasSubstr("default-src 'none'; style-src 'unsafe-inline'"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(html, HasSubstr("@media print"));
  EXPECT_THAT(html, HasSubstr("<html lang=\"en\">"));
}

TEST(FormatHtml, EscapesAllThatItShows) {
  const std::string html = FormatHtml(Sample(), "0.1.0");
  EXPECT_THAT(html, HasSubstr("<title>Runs of &lt;caf\xEF\xBF\xBD&gt;</title>"));
  EXPECT_THAT(html, HasSubstr("<h1>Runs of &lt;caf\xEF\xBF\xBD&gt;</h1>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">a&amp;b</th><td class=\"number\">12.5</td>"));
  EXPECT_THAT(html, HasSubstr("1 message about the files"));
  EXPECT_THAT(html, HasSubstr("<li>a&lt;b: cannot  be read</li>"));
}

TEST(FormatHtml, HasTheNumbersBehindEachPlot) {
  const std::string html = FormatHtml(Sample(), "0.1.0");
  const std::size_t plot = html.find("<svg id=\"plot\"");
  const std::size_t table = html.find("<caption>Its numbers</caption>");
  ASSERT_NE(plot, std::string::npos);
  ASSERT_NE(table, std::string::npos);
  EXPECT_LT(plot, table);
  EXPECT_LT(html.rfind("<details>", table), table);
  EXPECT_THAT(html, HasSubstr("<summary>Long one</summary>"));
}

TEST(FormatText, HasShortTablesInColumns) {
  EXPECT_EQ(FormatText(Sample()),
            "Runs of <caf\xEF\xBF\xBD>\n\n"
            "# Speed\n\n"
            "Speeds\n"
            "  run     images/s\n"
            "  a&b         12.5\n"
            "  longer         1\n\n"
            "Its numbers\n"
            "  r  ms\n"
            "  r   1\n\n");
}

TEST(FormatReportJson, HasAllNumbersAndNullForWhatIsUnknown) {
  RunRecord run;
  run.path = "caf\xE9";
  run.ranks = 2;
  run.settings = {{"batch_size", "4"}};
  run.times[1].step = 0.25;
  AddStep(run.measures, 20, 100);
  const auto report =
      nlohmann::json::parse(FormatReportJson(MakeReportModel({run}, 0), {"a message"}, "0.1.0"));
  EXPECT_EQ(report["format"], 1);
  EXPECT_EQ(report["messages"][0], "a message");
  const auto& first = report["runs"][0];
  EXPECT_EQ(first["path"], "caf\xEF\xBF\xBD");
  EXPECT_EQ(first["images_per_second"]["value"], 100);
  EXPECT_TRUE(first["images_per_second"]["margin"].is_null());
  EXPECT_DOUBLE_EQ(first["step_seconds"]["mean"].get<double>(), 0.08);
  EXPECT_EQ(first["rank_times"][0]["step_seconds"], 0.25);
  EXPECT_TRUE(first["top1_accuracy"].is_null());
  EXPECT_EQ(first["options"]["batch_size"], "4");
}

}  // namespace
}  // namespace bench
