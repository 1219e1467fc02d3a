// SPDX-License-Identifier: Apache-2.0

#include "launcher/report/site_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "launcher/health/verdict.h"

namespace launcher {
namespace {

// A name that is longer pushes its own text to the right, and nobody else's.
constexpr std::size_t kWidestName = 32;

std::string OnOneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char letter) { return letter < ' ' || letter == 127; },
      ' ');
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace

std::string ReportAsText(const SiteReport& report) {
  std::string text = "ddlrun --site-report, " + report.time + "\n";
  for (const SiteReportSection& part : report.parts) {
    std::size_t width = 0;
    for (const SiteReportField& line : part.lines) width = std::max(width, line.name.size());
    width = std::min(width, kWidestName);
    text += "\n" + part.title + "\n";
    for (const SiteReportField& line : part.lines) {
      std::string name = line.name;
      name.resize(std::max(width, name.size()), ' ');
      text += "  " + name + "  " + OnOneLine(line.text);
      if (!line.hosts.empty()) text += " (" + HostsText(line.hosts) + ")";
      text += "\n";
    }
  }
  return text;
}

std::string ReportAsJson(const SiteReport& report) {
  using nlohmann::json;
  json parts = json::array();
  for (const SiteReportSection& part : report.parts) {
    json lines = json::array();
    for (const SiteReportField& line : part.lines) {
      json written = {{"name", line.name}, {"text", line.text}};
      if (!line.hosts.empty()) written["hosts"] = line.hosts;
      lines.push_back(written);
    }
    parts.push_back({{"title", part.title}, {"lines", lines}});
  }
  const json whole = {{"format", kSiteReportFormat}, {"time", report.time}, {"parts", parts}};
  return whole.dump(2, ' ', true, json::error_handler_t::replace) + "\n";
}

SiteReport Redacted(SiteReport report, const Redaction& redaction) {
  for (SiteReportSection& part : report.parts) {
    for (SiteReportField& line : part.lines) line.text = WithoutNames(line.text, redaction);
  }
  return report;
}

}  // namespace launcher
