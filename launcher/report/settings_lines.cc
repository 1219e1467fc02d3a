// SPDX-License-Identifier: Apache-2.0

#include "launcher/report/settings_lines.h"

#include "launcher/base/error.h"
#include "launcher/cli/quoting.h"
#include "launcher/report/redaction.h"

namespace launcher {
namespace {

constexpr char kOfEnvironment[] = "environment.";

std::string ArgumentsText(const std::string& quoted) {
  std::string text;
  try {
    for (const std::string& word : WithoutValues(SplitOnWhitespace(quoted))) {
      text += (text.empty() ? "" : " ") + word;
    }
  } catch (const LaunchError&) {
    return "...";
  }
  return text;
}

std::string ReportedValue(const ShownSetting& setting) {
  if (setting.name == "mpi_arguments" || setting.name == "srun_arguments")
    return ArgumentsText(setting.value);
  if (!setting.name.starts_with(kOfEnvironment)) return setting.value;
  return IsKnownVariable(setting.name.substr(sizeof(kOfEnvironment) - 1)) ? setting.value : "...";
}

}  // namespace

std::vector<SiteReportField> SettingsLines(const Settings& settings) {
  std::vector<SiteReportField> lines;
  for (const ShownSetting& setting : settings.shown) {
    lines.push_back({setting.name, ReportedValue(setting) + "  # " + setting.origin});
  }
  return lines;
}

std::vector<SiteReportField> VariableLines(const Environment& environment) {
  std::vector<SiteReportField> lines;
  std::string others;
  for (const auto& [name, value] : environment) {
    if (IsKnownVariable(name)) {
      lines.push_back({name, value});
    } else if (IsNamedVariable(name)) {
      others += (others.empty() ? "" : ", ") + name;
    }
  }
  if (!others.empty()) lines.push_back({"set, value withheld", others});
  return lines;
}

}  // namespace launcher
