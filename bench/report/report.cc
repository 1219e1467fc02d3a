// SPDX-License-Identifier: Apache-2.0

#include "bench/report/report.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "bench/base/site_machine.h"
#include "bench/report/readers/read_run.h"
#include "bench/report/report_model.h"
#include "bench/report/sections.h"
#include "bench/report/views.h"
#include "support/number.h"
#include "support/spelling.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using trainer::Error;

constexpr char kPage[] = "report.html";

void RequireSense(const ReportOptions& options) {
  if (options.text && options.json) {
    throw Error(EX_USAGE, "--text and --json both write standard output: give one of them");
  }
  if (options.skip_steps < 0) throw Error(EX_USAGE, "--skip_steps must be 0 or more");
}

std::string Normal(const std::string& path) {
  std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  if (!normal.has_filename() && normal.has_relative_path()) normal = normal.parent_path();
  return normal.string();
}

std::size_t BaselineOf(const std::string& wanted, const std::vector<RunRecord>& runs) {
  if (wanted.empty()) return 0;
  const std::vector<std::string> names = NamesOfRuns(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (wanted == names[i] || Normal(wanted) == Normal(runs[i].path)) return i;
  }
  const std::string nearest = support::NearestSpelling(wanted, names);
  throw Error(EX_USAGE, "--baseline=" + wanted + " is none of the runs; " +
                            (nearest.empty() ? "one of them is " + names.front()
                                             : "did you mean " + nearest + "?"));
}

std::string TitleOf(const ReportOptions& options, const ReportModel& model) {
  if (!options.title.empty()) return options.title;
  if (model.runs.size() == 1) return "Training " + model.figures.front().name;
  return support::Counted(static_cast<long long>(model.runs.size()), "training");
}

}  // namespace

ReportTexts MakeReport(const ReportOptions& options, const std::string& version,
                       Diagnostics& diagnostics) {
  RequireSense(options);
  const scaling::Machine machine =
      options.site.empty() ? scaling::Machine() : MachineOfSite(options.site);
  std::vector<RunRecord> runs;
  for (const RunFiles& files : FindRuns(options.runs, diagnostics)) {
    if (std::optional<RunRecord> run = ReadRun(files, options.skip_steps, diagnostics)) {
      runs.push_back(std::move(*run));
    }
  }
  ReportTexts texts;
  if (runs.empty()) return texts;
  const std::size_t baseline = BaselineOf(options.baseline, runs);
  ReportModel model = MakeReportModel(std::move(runs), baseline);
  if (!options.site.empty()) AddPredictions(model, machine);
  const std::vector<std::string>& messages = diagnostics.messages();
  const Document document = DocumentOf(model, TitleOf(options, model), messages);
  if (options.text) texts.printed = FormatText(document);
  if (options.json) texts.printed = FormatReportJson(model, messages, version);
  texts.page_path = options.output;
  if (texts.page_path.empty() && !options.text && !options.json) texts.page_path = kPage;
  if (!texts.page_path.empty()) texts.page = FormatHtml(document, version);
  return texts;
}

}  // namespace bench
