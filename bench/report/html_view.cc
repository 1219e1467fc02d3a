// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include "bench/report/charts/svg_chart.h"
#include "bench/report/html_style.h"
#include "bench/report/views.h"
#include "support/number.h"

namespace bench {
namespace {

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

}  // namespace bench
