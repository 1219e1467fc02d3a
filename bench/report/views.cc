// SPDX-License-Identifier: Apache-2.0

#include "bench/report/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/report/charts/printable.h"
#include "bench/report/charts/svg_chart.h"
#include "support/number.h"

namespace bench {
namespace {

// The style sheet of the HTML report: light, dark and print.  Nothing in it is fetched.
// Each colour of a series differs from the background by a contrast of 3 : 1 or more.
constexpr char kHtmlStyle[] = R"css(:root {
  color-scheme: light dark;
  --back: #ffffff; --text: #1b1f24; --soft: #57606a; --rule: #d8dee4; --panel: #f6f8fa;
  --c0: #0b62a4; --c1: #b8430b; --c2: #1a7f37; --c3: #8250df;
  --c4: #8a6100; --c5: #b3256a; --c6: #0e7c86; --c7: #57606a;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --back: #0d1117; --text: #e6edf3; --soft: #9da7b3; --rule: #30363d; --panel: #161b22;
    --c0: #6cb6ff; --c1: #ff9b5e; --c2: #6bc46d; --c3: #d2a8ff;
    --c4: #e3b341; --c5: #f778ba; --c6: #56d4dd; --c7: #adbac7;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem; max-width: 75rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, "DejaVu Sans", "Liberation Sans", Arial, sans-serif;
}
h1 { font-size: 1.6rem; margin: 0.5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2rem 0 0.5rem; border-bottom: 1px solid var(--rule); }
p, nav, li { overflow-wrap: anywhere; }
.note { color: var(--soft); max-width: 60rem; }
nav ul, .legend { list-style: none; margin: 0.5rem 0; padding: 0; display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; }
a { color: var(--c0); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1rem; align-items: start; }
figure { margin: 0; padding: 0.75rem; background: var(--panel); border: 1px solid var(--rule); border-radius: 6px; min-width: 0; }
figcaption { font-weight: 600; overflow-wrap: anywhere; }
.chart { display: block; width: 100%; max-width: 36rem; height: auto; margin: 0.25rem 0; }
.chart text { fill: var(--text); font-size: 14px; font-variant-numeric: tabular-nums; }
.legend { font-size: 0.875rem; }
.key { width: 28px; height: 10px; }
.grid { stroke: var(--rule); stroke-width: 1; fill: none; }
.zero { stroke: var(--soft); stroke-width: 1.5; fill: none; }
.s0 { --c: var(--c0); } .s1 { --c: var(--c1); } .s2 { --c: var(--c2); } .s3 { --c: var(--c3); }
.s4 { --c: var(--c4); } .s5 { --c: var(--c5); } .s6 { --c: var(--c6); } .s7 { --c: var(--c7); }
.line, .key-line { stroke: var(--c); stroke-width: 2; fill: none; stroke-linejoin: round; }
.d1 { stroke-dasharray: 7 3; } .d2 { stroke-dasharray: 2 3; }
.ideal { --c: var(--soft); stroke-dasharray: 5 4; }
.key-line.wide { stroke-width: 9; }
.band { fill: var(--c); opacity: 0.2; stroke: none; }
.point { fill: var(--c); stroke: var(--panel); stroke-width: 1; }
.bar { fill: var(--c); stroke: var(--panel); stroke-width: 0.75; }
.interval { stroke: var(--c); stroke-width: 2; fill: none; }
.scroll { overflow-x: auto; margin: 0.5rem 0 1rem; }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 0.25rem 0; overflow-wrap: anywhere; }
th, td { padding: 0.2rem 0.6rem; border-bottom: 1px solid var(--rule); text-align: left; vertical-align: top; }
td { max-width: 40rem; overflow-wrap: anywhere; }
tbody th { font-weight: 400; overflow-wrap: anywhere; min-width: 6rem; }
th.number, td.number { text-align: right; white-space: nowrap; }
details { margin: 0.5rem 0; }
summary { cursor: pointer; color: var(--soft); }
.problems { border-left: 4px solid var(--c1); padding: 0.25rem 1rem; background: var(--panel); }
@media print {
  @page { margin: 12mm; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2 { break-after: avoid; }
  .figures { grid-template-columns: 1fr 1fr; }
  figure, tr, .problems { break-inside: avoid; }
  .scroll { overflow: visible; }
  table { font-size: 7.5pt; }
  nav, details:not([open]), details > summary { display: none; }
  .chart, .key { print-color-adjust: exact; }
}
)css";

// Rows of a table that stands open; longer ones are folded.
constexpr std::size_t kMaxOpenRows = 60;

std::string Cell(const char* element, bool is_number, const char* more, const std::string& text) {
  return fmt::format("<{0}{1}{2}>{3}</{0}>", element, more, is_number ? " class=\"number\"" : "",
                     Escaped(text));
}

// The first cell of a row is its name.
std::string HtmlRow(const Table& table, const std::vector<std::string>& row) {
  std::string html = "<tr>";
  for (std::size_t i = 0; i < row.size(); ++i) {
    const bool is_number = table.columns[i].is_number;
    html += i == 0 ? Cell("th", is_number, " scope=\"row\"", row[i])
                   : Cell("td", is_number, "", row[i]);
  }
  return html + "</tr>\n";
}

std::string HtmlTable(const Table& table) {
  std::string html = fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\">\n"
      "<table>\n<caption>{0}</caption>\n",
      Escaped(table.caption));
  html += "<thead><tr>";
  for (const TableColumn& column : table.columns) {
    html += Cell("th", column.is_number, " scope=\"col\"", column.name);
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) html += HtmlRow(table, row);
  return html + "</tbody>\n</table>\n</div>\n";
}

std::string Folded(const std::string& summary, const std::string& html) {
  return "<details>\n<summary>" + Escaped(summary) + "</summary>\n" + html + "</details>\n";
}

std::string HtmlFigure(const Figure& figure) {
  return "<figure>\n<figcaption>" + Escaped(figure.title) + "</figcaption>\n" +
         SvgOf(figure.chart, figure.id, figure.title) + LegendOf(figure.chart) +
         Folded("The numbers", HtmlTable(figure.table)) + "</figure>\n";
}

std::string HtmlSection(const Section& section) {
  std::string html =
      fmt::format("<section id=\"section-{}\">\n<h2>{}</h2>\n", section.id, Escaped(section.title));
  if (!section.note.empty()) html += "<p class=\"note\">" + Escaped(section.note) + "</p>\n";
  if (!section.figures.empty()) {
    html += "<div class=\"figures\">\n";
    for (const Figure& figure : section.figures) html += HtmlFigure(figure);
    html += "</div>\n";
  }
  for (const Table& table : section.tables) {
    const bool is_open = table.is_short && table.rows.size() <= kMaxOpenRows;
    html += is_open ? HtmlTable(table) : Folded(table.caption, HtmlTable(table));
  }
  return html + "</section>\n";
}

std::string HtmlProblems(const std::vector<std::string>& problems) {
  if (problems.empty()) return "";
  std::string html = "<section id=\"section-problems\" class=\"problems\">\n<h2>" +
                     support::Counted(static_cast<long long>(problems.size()), "message") +
                     " about the files</h2>\n<ul>\n";
  for (const std::string& problem : problems) html += "<li>" + Escaped(problem) + "</li>\n";
  return html + "</ul>\n</section>\n";
}

}  // namespace

std::string FormatHtml(const Document& document, const std::string& version) {
  const std::string title = Escaped(document.title);
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      // Nothing is fetched and nothing runs, whatever stands in the logs.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n"
      "<meta name=\"generator\" content=\"ddlbench " +
      Escaped(version) + "\">\n<title>" + title + "</title>\n<style>\n" + kHtmlStyle +
      "</style>\n</head>\n<body>\n<header>\n<h1>" + title + "</h1>\n</header>\n<nav " +
      "aria-label=\"Sections\">\n<ul>\n";
  for (const Section& section : document.sections) {
    html += fmt::format("<li><a href=\"#section-{}\">{}</a></li>\n", section.id,
                        Escaped(section.title));
  }
  html += "</ul>\n</nav>\n<main>\n" + HtmlProblems(document.problems);
  for (const Section& section : document.sections) html += HtmlSection(section);
  return html + "</main>\n<footer><p class=\"note\">ddlbench " + Escaped(version) +
         "; the numbers are defined in its "
         "doc/reference/metrics.md.</p></footer>\n</body>\n</html>\n";
}

namespace {

// Letters of a column that is not the last one.
constexpr std::size_t kWidestColumn = 60;

std::string Padded(const std::string& text, std::size_t width, bool is_number) {
  const std::size_t letters = CountChars(text);
  const std::string blanks(width > letters ? width - letters : 0, ' ');
  return is_number ? blanks + text : text + blanks;
}

std::string StripTrailingWhitespace(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string TextTable(const Table& table) {
  std::vector<std::vector<std::string>> rows(1);
  for (const TableColumn& column : table.columns) rows[0].push_back(column.name);
  for (const std::vector<std::string>& row : table.rows) {
    rows.emplace_back();
    for (const std::string& cell : row) rows.back().push_back(Printable(cell));
  }
  std::vector<std::size_t> widths(table.columns.size(), 0);
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], std::min(CountChars(row[i]), kWidestColumn));
    }
  }
  std::string text = Printable(table.caption) + "\n";
  for (const std::vector<std::string>& row : rows) {
    std::string line = " ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += " " + Padded(row[i], widths[i], table.columns[i].is_number) + " ";
    }
    line = StripTrailingWhitespace(std::move(line));
    if (!line.empty()) text += line + "\n";
  }
  return text + "\n";
}

}  // namespace

std::string FormatText(const Document& document) {
  std::string text = Printable(document.title) + "\n\n";
  for (const Section& section : document.sections) {
    std::string tables;
    for (const Table& table : section.tables) {
      if (table.is_short) tables += TextTable(table);
    }
    for (const Figure& figure : section.figures) {
      if (figure.table.is_short) tables += TextTable(figure.table);
    }
    if (!tables.empty()) text += "# " + section.title + "\n\n" + tables;
  }
  return text;
}

namespace {

using json = nlohmann::ordered_json;

// Of this object; another number where a key means something else, or is gone.
constexpr int kFormat = 1;

template <typename Value>
json OrNull(const std::optional<Value>& value) {
  return value ? json(*value) : json();
}

json OrNull(std::int64_t count) { return count == 0 ? json() : json(count); }

json TextOrNull(const std::string& text) { return text.empty() ? json() : json(Printable(text)); }

json Of(const Estimate& estimate) {
  return {{"value", estimate.value}, {"margin", OrNull(estimate.margin)}};
}

json Of(const std::optional<Estimate>& estimate) { return estimate ? Of(*estimate) : json(); }

json Of(const std::optional<StepSeconds>& step) {
  if (!step) return {};
  return {{"mean", step->mean}, {"sd", step->sd},   {"min", step->min}, {"median", step->median},
          {"p95", step->p95},   {"p99", step->p99}, {"max", step->max}};
}

json Of(const Settings& settings) {
  json object = json::object();
  for (const auto& [name, value] : settings) object[Printable(name)] = Printable(value);
  return object;
}

json OfRanks(const RunRecord& run) {
  json ranks = json::array();
  for (const auto& [rank, times] : run.times) {
    json phases = json::object();
    for (std::size_t i = 0; i < kPhaseNames.size(); ++i) phases[kPhaseNames[i]] = times.phases[i];
    ranks.push_back({{"rank", rank},
                     {"host", TextOrNull(times.host)},
                     {"steps", OrNull(times.steps)},
                     {"step_seconds", times.step},
                     {"phase_seconds", phases}});
  }
  return ranks;
}

json Of(const ThinnedSeries& series) {
  if (series.count() == 0) return {};
  const SeriesPoint all = Thinned(series.points(), 1).front();
  return {{"mean", all.mean}, {"min", all.min}, {"max", all.max}, {"count", all.count}};
}

json Of(const GpuSamples& gpu) {
  return {{"name", Printable(gpu.name)},
          {"sm_clock_mhz", Of(gpu.sm_clock)},
          {"memory_clock_mhz", Of(gpu.memory_clock)},
          {"power_watts", Of(gpu.power)},
          {"temperature_celsius", Of(gpu.temperature)},
          {"energy_joules", gpu.energy},
          {"energy_seconds", gpu.power_seconds}};
}

json Of(const RunRecord& run, const RunStats& figures, const std::string& group) {
  json gpus = json::array();
  for (const GpuSamples& gpu : run.gpus) gpus.push_back(Of(gpu));
  const RunMeasures& measures = run.measures;
  return {{"name", Printable(figures.name)},
          {"path", Printable(run.path)},
          {"group", Printable(group)},
          {"ranks", OrNull(run.ranks)},
          {"global_batch", OrNull(figures.global_batch)},
          {"began", TextOrNull(run.began)},
          {"seconds", run.seconds},
          {"launches", run.launches},
          {"steps", figures.steps},
          {"images_per_second", Of(figures.images_per_second)},
          {"train_throughput", OrNull(run.train_throughput)},
          {"step_seconds", Of(figures.step)},
          {"last_step", measures.last_step < 0 ? json() : json(measures.last_step)},
          {"last_cross_entropy", OrNull(measures.last_cross_entropy)},
          {"steps_without_finite_loss", measures.strange_losses},
          {"top1_accuracy", OrNull(run.evaluation.top1)},
          {"top5_accuracy", OrNull(run.evaluation.top5)},
          {"eval_loss", OrNull(run.evaluation.loss)},
          {"eval_throughput", OrNull(run.evaluation.images_per_second)},
          {"rank_times_from", TextOrNull(run.times_from)},
          {"rank_times", OfRanks(run)},
          {"gpus", gpus},
          {"power_watts", OrNull(figures.watts)},
          {"joules_per_image", OrNull(figures.joules_per_image)},
          {"environment", Of(run.environment)},
          {"options", Of(run.settings)}};
}

json Of(const Difference& difference, const std::string& a, const std::string& b) {
  return {{"name", Printable(b)},
          {"baseline", Printable(a)},
          {"images_per_second", Of(difference.images_per_second)},
          {"percent", Of(difference.percent)}};
}

json OfScalings(const ReportModel& model) {
  json scalings = json::array();
  for (const Scaling& scaling : model.scalings) {
    json points = json::array();
    for (const ScalingPoint& point : scaling.points) {
      json row = {{"group", Printable(model.groups[point.group].name)},
                  {"ranks", point.ranks},
                  {"images_per_second", Of(point.images_per_second)},
                  {"ideal", point.ideal},
                  {"efficiency", point.efficiency}};
      if (point.predicted) row["predicted"] = *point.predicted;
      points.push_back(std::move(row));
    }
    scalings.push_back({{"name", Printable(scaling.name)}, {"points", points}});
  }
  return scalings;
}

}  // namespace

std::string FormatReportJson(const ReportModel& model, const std::vector<std::string>& problems,
                             const std::string& version) {
  json runs = json::array();
  for (std::size_t i = 0; i < model.runs.size(); ++i) {
    const RunStats& figures = model.figures[i];
    runs.push_back(Of(model.runs[i], figures, model.groups[figures.group].name));
  }
  json groups = json::array();
  for (const RunGroup& group : model.groups) {
    groups.push_back({{"name", Printable(group.name)},
                      {"ranks", OrNull(group.ranks)},
                      {"runs", group.runs.size()},
                      {"images_per_second", Of(group.images_per_second)}});
  }
  json run_differences = json::array();
  for (const Difference& difference : model.run_differences) {
    run_differences.push_back(
        Of(difference, model.figures[difference.a].name, model.figures[difference.b].name));
  }
  json group_differences = json::array();
  for (const Difference& difference : model.group_differences) {
    group_differences.push_back(
        Of(difference, model.groups[difference.a].name, model.groups[difference.b].name));
  }
  json messages = json::array();
  for (const std::string& problem : problems) messages.push_back(Printable(problem));
  const json report = {{"format", kFormat},
                       {"program", "ddlbench " + version},
                       {"runs", runs},
                       {"groups", groups},
                       {"scaling", OfScalings(model)},
                       {"run_differences", run_differences},
                       {"group_differences", group_differences},
                       {"messages", messages}};
  return report.dump(2) + "\n";
}

}  // namespace bench
