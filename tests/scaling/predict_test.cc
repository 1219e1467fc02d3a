// SPDX-License-Identifier: Apache-2.0

#include "scaling/predict.h"

#include <cstdio>
#include <tuple>

#include "tests/support/directories.h"
#include "tests/support/test.h"

namespace scaling {
namespace {

// The predictor against published speeds: told what one GPU and one whole node of a series reach,
// it says the rest.  doc/scaling.md has the table.

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
  std::ifstream file(tests::SourceDirectory() + "/tests/fixtures/scaling/points.csv");
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
    const bool is_reported = gpus == 1 || gpus == series.gpus_per_node ||
                             (with_two_nodes && gpus == 2 * series.gpus_per_node);
    if (!is_reported) predicted.speeds[gpus] = Predict(training, gpus).images_per_second;
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
  std::ifstream file(tests::SourceDirectory() + "/doc/scaling.md");
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

// Bede's job: 4 V100 on each node, 256 images, 1,125 images/s of one GPU.
Training OfBede() {
  Training training;
  training.work = {.alone = 256 / 1125.0,
                   .buckets = ResNet50Buckets(AllReduceModel::kFp32, BucketRule::kDdltraind)};
  training.links = {.gpus_per_node = 4, .inside = 32e9, .between = AdapterRate(200)};
  return training;
}

std::vector<std::string> NamesOf(const std::vector<Change>& changes) {
  std::vector<std::string> names;
  for (const Change& change : changes) names.push_back(change.what);
  return names;
}

TEST(Predict, OfOneGpuIsItsOwnSpeed) {
  const Prediction at = Predict(OfBede(), 1);
  EXPECT_NEAR(at.images_per_second, 1125, 1e-6);
  EXPECT_EQ(at.efficiency, 1);
  EXPECT_EQ(at.nodes, 1);
  EXPECT_EQ(at.bound, Bound::kCompute);
}

TEST(Predict, OfOverlappedSumsScalesToThousandsOfNodes) {
  EXPECT_GT(Predict(OfBede(), 32).efficiency, 0.99);
  const Prediction large = Predict(OfBede(), 4 * kMaxNodes);
  EXPECT_EQ(large.nodes, 4096);
  EXPECT_LT(large.efficiency, Predict(OfBede(), 32).efficiency);
  EXPECT_GT(large.efficiency, 0);
}

TEST(Predict, OfTwoKindsOfNodesAllWaitForTheSlowerOne) {
  Training training = OfBede();
  training.others = {.nodes = 2, .alone = 256 / 450.0, .links = training.links};
  const Prediction at = Predict(training, 16);
  EXPECT_EQ(at.nodes, 6);
  EXPECT_EQ(at.ranks, 24);
  EXPECT_NEAR(at.step, 256 / 450.0, 2e-3);
  EXPECT_NEAR(at.kinds_wait, 256 / 450.0 - 256 / 1125.0, 1e-9);
  EXPECT_NEAR(at.images_per_second, 24 * 450, 50);
  EXPECT_NEAR(at.efficiency, 24 * 450 / (16 * 1125.0 + 8 * 450), 2e-3);
  EXPECT_EQ(at.bound, Bound::kRanks);
  EXPECT_EQ(NamesOf(ChangesThatHelp(training, 16)),
            (std::vector<std::string>{"GPUs that are all of the quicker kind", "GPUs twice as fast",
                                      "without the nodes of the other kind"}));
  // Whichever is named first.
  Training turned = training;
  turned.work.alone = training.others.alone;
  turned.others = {.nodes = 4, .alone = training.work.alone, .links = training.links};
  const Prediction same = Predict(turned, 8);
  EXPECT_EQ(same.step, at.step);
  EXPECT_EQ(same.ranks, at.ranks);
  EXPECT_NEAR(same.efficiency, at.efficiency, 1e-12);
}

TEST(Predict, OfTwoEqualKindsIsThatOfOne) {
  Training training = OfBede();
  training.others = {.nodes = 3, .alone = training.work.alone, .links = training.links};
  const Prediction at = Predict(training, 4);
  const Prediction one_kind = Predict(OfBede(), 16);
  EXPECT_EQ(at.nodes, 4);
  EXPECT_EQ(at.step, one_kind.step);
  EXPECT_NEAR(at.efficiency, one_kind.efficiency, 1e-12);
  EXPECT_EQ(at.bound, one_kind.bound);
}

TEST(Predict, IsBoundByAFileSystemThatAllShare) {
  Training training = OfBede();
  training.input = {.file_system = 2e9, .image_bytes = 110e3};
  const double limit = 2e9 / 110e3;
  EXPECT_EQ(Predict(training, 16).bound, Bound::kCompute);
  const Prediction at = Predict(training, 32);
  EXPECT_EQ(at.bound, Bound::kInput);
  EXPECT_NEAR(at.images_per_second, limit, 1e-6);
  EXPECT_EQ(NamesOf(ChangesThatHelp(training, 32)),
            (std::vector<std::string>{"input that is never waited for"}));
}

TEST(Predict, IsBoundByTheProcessorsOfANode) {
  Training training = OfBede();
  training.input = {.node_images = 2000};
  EXPECT_NEAR(Predict(training, 32).images_per_second, 8 * 2000, 1e-6);
  EXPECT_NEAR(Predict(training, 4).images_per_second, 2000, 1e-6);
}

TEST(Predict, IsBoundByASlowNetwork) {
  Training training = OfBede();
  training.links.between = AdapterRate(5);
  const Prediction at = Predict(training, 32);
  EXPECT_EQ(at.bound, Bound::kBetween);
  EXPECT_EQ(Predict(training, 4).bound, Bound::kCompute);
  const std::vector<Change> changes = ChangesThatHelp(training, 32);
  const std::vector<std::string> names = NamesOf(changes);
  EXPECT_NE(std::ranges::find(names, "twice the adapters of each node"), names.end());
  EXPECT_NE(std::ranges::find(names, "sums in 16 bits"), names.end());
  EXPECT_TRUE(std::ranges::is_sorted(changes, std::ranges::greater(), &Change::images_per_second));
}

TEST(Predict, IsBoundBySlowLinksInTheNode) {
  Training training = OfBede();
  training.links.inside = 0.5e9;
  EXPECT_EQ(Predict(training, 4).bound, Bound::kInside);
}

TEST(Predict, IsBoundByRanksThatAreFarApart) {
  Training training = OfBede();
  training.work.spread = 0.1 * training.work.alone;
  EXPECT_EQ(Predict(training, 32).bound, Bound::kRanks);
}

TEST(Predict, NamesTheGpuWhereNothingElseHelps) {
  EXPECT_EQ(NamesOf(ChangesThatHelp(OfBede(), 4)),
            (std::vector<std::string>{"a GPU twice as fast"}));
}

TEST(Calibrate, OfOneGpuAloneTakesRanksForAlike) {
  const Training training = OfBede();
  const Calibration found = Calibrate(training.work, training.links, 256, {1000}, Overlap::kAuto);
  EXPECT_DOUBLE_EQ(found.work.alone, 0.256);
  EXPECT_EQ(found.work.spread, 0);
  EXPECT_EQ(found.work.wait_between, 0);
  EXPECT_TRUE(found.work.overlaps);
  EXPECT_EQ(found.reason, "");
}

TEST(Calibrate, FindsTheSpreadThatGivesTheSpeedOfTheNode) {
  Training training = OfBede();
  const Calibration found =
      Calibrate(training.work, training.links, 256, {1125, 4400}, Overlap::kAuto);
  EXPECT_FALSE(found.waits);
  EXPECT_EQ(found.reason, "");
  training.work = found.work;
  EXPECT_GT(found.work.spread, 0);
  EXPECT_NEAR(Predict(training, 4).images_per_second, 4400, 1e-6);
}

TEST(Calibrate, TakesANodeThatIsFasterThanItsGpusForAlike) {
  EXPECT_EQ(Calibrate(OfBede().work, OfBede().links, 256, {1125, 4600}, Overlap::kAuto).work.spread,
            0);
}

TEST(Calibrate, SaysThatSoftwareWaits) {
  Training training = OfBede();
  const Calibration found =
      Calibrate(training.work, training.links, 256, {1125, 3900}, Overlap::kAuto);
  EXPECT_TRUE(found.waits);
  EXPECT_FALSE(found.work.overlaps);
  EXPECT_EQ(found.reason,
            "one node takes 15 % longer for a step than one GPU, and its links explain 5 ms of "
            "35 ms: ranks wait for their hosts, and their sums start late and are not hidden");
  training.work = found.work;
  EXPECT_NEAR(Predict(training, 4).images_per_second, 3900, 1e-6);
  // Unless the user knows better.
  EXPECT_FALSE(Calibrate(training.work, training.links, 256, {1125, 3900}, Overlap::kYes).waits);
  EXPECT_FALSE(
      Calibrate(training.work, training.links, 256, {1125, 3900}, Overlap::kNo).work.overlaps);
}

TEST(Calibrate, TakesWhatTwoNodesWaitForToEveryNumberOfNodes) {
  Training training = OfBede();
  const Calibration found =
      Calibrate(training.work, training.links, 256, {1125, 4400, 6000}, Overlap::kAuto);
  training.work = found.work;
  EXPECT_NEAR(Predict(training, 8).images_per_second, 6000, 1e-6);
  EXPECT_NEAR(Predict(training, 4).images_per_second, 4400, 1e-6);
  EXPECT_NEAR(Predict(training, 16).images_per_second, 12000, 200);
  EXPECT_NE(found.reason.find("two nodes take 10"), std::string::npos) << found.reason;
}

}  // namespace
}  // namespace scaling
