// SPDX-License-Identifier: Apache-2.0

#include "launcher/report/site_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace launcher {
namespace {

SiteReport Example() {
  return {"2026-11-27 09:30:00 UTC",
          {{"Nodes", {{"SMT", "on", {"n1", "n2"}}, {"a longer name", "two\nlines\x1b"}}}}};
}

TEST(SiteReport, AsTextHasOneLineForEach) {
  EXPECT_EQ(ReportAsText(Example()),
            "ddlrun --site-report, 2026-11-27 09:30:00 UTC\n"
            "\n"
            "Nodes\n"
            "  SMT            on (n[1-2])\n"
            "  a longer name  two lines\n");
}

TEST(SiteReport, AsJsonHasItsNumberAndEachHost) {
  const auto read = nlohmann::json::parse(ReportAsJson(Example()));
  EXPECT_EQ(read.at("format"), 1);
  EXPECT_EQ(read.at("time"), "2026-11-27 09:30:00 UTC");
  const auto& lines = read.at("parts").at(0).at("lines");
  EXPECT_EQ(lines.at(0).at("hosts").at(1), "n2");
  EXPECT_EQ(lines.at(0).at("text"), "on");
  EXPECT_FALSE(lines.at(1).contains("hosts"));
}

TEST(SiteReport, AsJsonIsAsciiWhateverADriverSays) {
  SiteReport report = Example();
  report.parts[0].lines[0].text = "caf\xe9";
  for (const char letter : ReportAsJson(report)) EXPECT_GE(letter, 0);
}

TEST(SiteReport, HidesNamesInEveryText) {
  SiteReport report = Example();
  report.parts[0].lines[1].text = "/home/alice/x";
  Redaction redaction;
  redaction.home = "/home/alice";
  EXPECT_EQ(Redacted(report, redaction).parts[0].lines[1].text, "~/x");
  EXPECT_EQ(Redacted(report, redaction).parts[0].lines[0].text, "on");
}

}  // namespace
}  // namespace launcher
