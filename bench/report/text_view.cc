// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "bench/report/charts/printable.h"
#include "bench/report/views.h"

namespace bench {
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

}  // namespace bench
