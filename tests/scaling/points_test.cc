// SPDX-License-Identifier: Apache-2.0
//
// The predictor against published speeds: told what one GPU and one whole node of a series reach,
// it says the rest.  doc/scaling.md has the table.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "scaling/calibrate.h"
#include "scaling/predict.h"
#include "tests/support/folders.h"

namespace scaling {
namespace {

struct Series {
  std::string software = {}, precision = {}, system = {}, gpu = {}, inside = {};
  int gpus_per_node = 0;
  double batch = 0;
  std::map<int, double> speeds = {};  // by GPUs
};

std::vector<std::string> CellsOf(const std::string& line) {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') {
      is_quoted = !is_quoted;
    } else if (c == ',' && !is_quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

// Those with a GPU alone, a whole node and something else to predict.
std::vector<Series> ReadSeries() {
  std::ifstream file(tests::SourceFolder() + "/tests/fixtures/scaling/points.csv");
  std::vector<Series> all;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = CellsOf(line);
    Series row{.software = cells.at(7),
               .precision = cells.at(8),
               .system = cells.at(0),
               .gpu = cells.at(1),
               .inside = cells.at(5),
               .gpus_per_node = std::stoi(cells.at(2)),
               .batch = std::stod(cells.at(9))};
    const auto key = [](const Series& series) {
      return std::tie(series.system, series.software, series.precision);
    };
    if (all.empty() || key(all.back()) != key(row)) all.push_back(row);
    all.back().speeds[std::stoi(cells.at(4))] = std::stod(cells.at(10));
  }
  std::erase_if(all, [](const Series& series) {
    return !series.speeds.contains(1) || !series.speeds.contains(series.gpus_per_node) ||
           series.speeds.size() < 3;
  });
  return all;
}

struct Predicted {
  Calibration calibration;
  std::map<int, double> speeds;  // by GPUs; not those that were told
};

// With the speed of two nodes too where `with_two_nodes`.
Predicted PredictSeries(const Series& series, bool with_two_nodes = false) {
  const Inside inside = *InsideOfName(series.gpu.starts_with("A100") ? "nvlink3" : "nvlink2");
  Training training{.batch = series.batch, .rule = BucketRule::kPytorch};
  training.links = {.gpus_per_node = series.gpus_per_node,
                    .inside = inside.rate,
                    .between = AdapterRate(100),
                    .generation = inside.generation};
  training.work.buckets = ResNet50Buckets(training.sums, training.rule);
  Speeds speeds{series.speeds.at(1), series.speeds.at(series.gpus_per_node)};
  if (with_two_nodes) speeds.two_nodes = series.speeds.at(2 * series.gpus_per_node);
  Predicted predicted{
      Calibrate(training.work, training.links, series.batch, speeds, Overlap::kAuto), {}};
  training.work = predicted.calibration.work;
  for (const auto& [gpus, speed] : series.speeds) {
    const bool is_told = gpus == 1 || gpus == series.gpus_per_node ||
                         (with_two_nodes && gpus == 2 * series.gpus_per_node);
    if (!is_told) predicted.speeds[gpus] = Predict(training, gpus).images_per_second;
  }
  return predicted;
}

double ErrorOf(const Series& series, int gpus, double predicted) {
  return predicted / series.speeds.at(gpus) - 1;
}

std::string NameOf(const Series& series) { return series.software + " " + series.precision; }

TEST(PublishedSpeeds, OfSeriesThatOverlapArePredictedWithinFifteenPercent) {
  std::vector<double> errors;
  for (const Series& series : ReadSeries()) {
    const Predicted predicted = PredictSeries(series);
    if (predicted.calibration.waits) continue;
    for (const auto& [gpus, speed] : predicted.speeds) {
      errors.push_back(std::abs(ErrorOf(series, gpus, speed)));
      EXPECT_LE(errors.back(), 0.15) << NameOf(series) << " on " << gpus;
    }
  }
  ASSERT_EQ(errors.size(), 19u);
  std::ranges::sort(errors);
  EXPECT_LE(errors[errors.size() / 2], 0.05);
}

TEST(PublishedSpeeds, OfSeriesWhoseSoftwareWaitsAreNamedWithTheReason) {
  std::vector<std::string> waiting;
  for (const Series& series : ReadSeries()) {
    const Calibration calibration = PredictSeries(series).calibration;
    if (!calibration.waits) continue;
    waiting.push_back(NameOf(series));
    EXPECT_NE(calibration.reason.find("ranks wait for their hosts"), std::string::npos);
  }
  EXPECT_EQ(waiting, (std::vector<std::string>{
                         "NVIDIA DLE TensorFlow 1 fp16", "NVIDIA DLE TensorFlow 1 + XLA fp16",
                         "TensorFlow 2 fp16", "MindSpore fp16", "NVIDIA DLE MXNet amp"}));
}

// One GPU, one node and two nodes tell what four will do, also where software waits.
TEST(PublishedSpeeds, OfFourNodesArePredictedFromTwo) {
  int count = 0;
  for (const Series& series : ReadSeries()) {
    if (!series.speeds.contains(32)) continue;
    ++count;
    const Predicted predicted = PredictSeries(series, true);
    EXPECT_LE(std::abs(ErrorOf(series, 32, predicted.speeds.at(32))), 0.07) << NameOf(series);
  }
  EXPECT_EQ(count, 9);
}

std::string RowOf(const Series& series, int gpus, const Predicted& from_one) {
  const double speed = from_one.speeds.at(gpus);
  const bool has_two = series.speeds.contains(2 * series.gpus_per_node);
  std::string from_two;
  if (has_two && gpus > 2 * series.gpus_per_node) {
    const double other = PredictSeries(series, true).speeds.at(gpus);
    char text[64];
    std::snprintf(text, sizeof text, "%.0f, %+.1f %%", other, 100 * ErrorOf(series, gpus, other));
    from_two = text;
  }
  char row[256];
  std::snprintf(row, sizeof row, "| %s%s | %d | %.0f | %.0f | %+.1f %% | %s |",
                NameOf(series).c_str(), from_one.calibration.waits ? " (waits)" : "", gpus,
                series.speeds.at(gpus), speed, 100 * ErrorOf(series, gpus, speed),
                from_two.c_str());
  std::string text = row;
  if (text.ends_with("|  |")) text.replace(text.size() - 4, 4, "| |");
  return text;
}

TEST(PublishedSpeeds, AreInTheTableOfTheDocument) {
  std::ifstream file(tests::SourceFolder() + "/doc/scaling.md");
  std::ostringstream page;
  page << file.rdbuf();
  std::string missing;
  for (const Series& series : ReadSeries()) {
    const Predicted predicted = PredictSeries(series);
    for (const auto& [gpus, speed] : predicted.speeds) {
      const std::string row = RowOf(series, gpus, predicted);
      if (page.str().find(row + "\n") == std::string::npos) missing += row + "\n";
    }
  }
  EXPECT_EQ(missing, "") << "rows that doc/scaling.md lacks";
}

}  // namespace
}  // namespace scaling
