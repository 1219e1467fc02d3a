// SPDX-License-Identifier: Apache-2.0
//
// A report as sections of tables and charts, which the views show: what stands in it, not how it
// looks.  Texts are as they were read; each view makes them harmless.  Values.

#pragma once

#include <string>
#include <variant>
#include <vector>

namespace bench {

struct TableColumn {
  std::string name;
  bool is_number = false;
};

struct Table {
  std::string caption;
  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> rows = {};  // a cell for each column
  bool is_short = true;                             // worth its place in a terminal
};

struct ChartPoint {
  double x = 0;
  double y = 0;
  double low = 0;  // of what y is the mean of, or of its confidence interval
  double high = 0;
};

struct LineSeries {
  std::string name;
  std::vector<ChartPoint> points = {};  // where x goes back, a new line begins
  bool is_ideal = false;                // not measured
};

struct LineChart {
  std::string x_label;
  std::string y_label;
  bool x_is_whole = false;
  bool y_from_zero = false;
  std::vector<LineSeries> series = {};
};

struct BarRow {
  std::string name;
  std::vector<double> parts;  // one for each part name, from 0, laid end to end
  std::string text;           // behind the bar
};

struct BarChart {
  std::string x_label;
  std::vector<std::string> part_names;
  std::vector<BarRow> rows = {};
};

struct IntervalRow {
  std::string name;
  double value = 0;
  double margin = 0;  // on both sides; 0 where it is not known
};

// Against a line at 0.
struct IntervalChart {
  std::string x_label;
  std::vector<IntervalRow> rows = {};
};

using Chart = std::variant<LineChart, BarChart, IntervalChart>;

struct Figure {
  std::string id;  // of letters, digits and "-"
  std::string title;
  Chart chart;
  Table table;  // the numbers of the chart
};

struct Section {
  std::string id;
  std::string title;
  std::string note;  // what the numbers mean
  std::vector<Table> tables = {};
  std::vector<Figure> figures = {};
};

struct Document {
  std::string title;
  std::vector<Section> sections;
  std::vector<std::string> problems;  // what was wrong with the files, one line each
};

}  // namespace bench
