// SPDX-License-Identifier: Apache-2.0
//
// The table of the predictor against the trainer's own layout and plan of buckets.

#include <ostream>

#include "scaling/step.h"
#include "tests/support/test.h"
#include "trainer/backend/registry.h"
#include "trainer/comm/gradient_buckets.h"
#include "trainer/model/network_definition.h"

namespace scaling {

void PrintTo(const Bucket& bucket, std::ostream* out) {
  *out << "{" << bucket.bytes << ", " << bucket.ready << "}";
}

namespace {

// Values that come out of a block's convolutions for one image: what its backward pass takes is in
// proportion to them, as long as memory is what bounds it.
std::vector<double> ValuesOfBlocks() {
  std::vector<double> values = {112.0 * 112 * 64};
  int size = 56;
  int channels = 64;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int block = 0; block < blocks; ++block) {
      const int out = block == 0 && channels > 64 ? size / 2 : size;
      double sum = size * size * channels + out * out * (channels + 4.0 * channels);
      if (block == 0) sum += out * out * 4.0 * channels;
      values.push_back(sum);
      size = out;
    }
    channels *= 2;
  }
  values.push_back(0);  // the head
  return values;
}

trainer::ParameterLayout LayoutOfResNet50() {
  const auto backend = trainer::MakeBackend("reference", {});
  return trainer::DefineNetwork(*backend, {.arch = "resnet50", .batch_size = 1}).layout;
}

// Of parameters that `belongs` names, laid out one behind the other; with what share of backward is
// done when each is there.
template <typename Belongs>
std::vector<Bucket> PlanOf(const trainer::ParameterLayout& layout, std::size_t element_bytes,
                           const trainer::GradientBucketBytes& limits, const Belongs& belongs) {
  const std::vector<double> values = ValuesOfBlocks();
  double all = 0;
  for (const double value : values) all += value;
  std::vector<std::size_t> ends;
  std::vector<double> ready;  // of each end's parameter
  std::size_t end = 0;
  double before = 0;  // values of the blocks before
  for (std::size_t block = 0; block + 1 < layout.first_of_block.size(); ++block) {
    for (std::size_t i = layout.first_of_block[block]; i < layout.first_of_block[block + 1]; ++i) {
      const trainer::Parameter& parameter = layout.parameters[i];
      if (parameter.spec.statistic || !belongs(parameter)) continue;
      end += parameter.count;
      ends.push_back(end);
      ready.push_back(1 - before / all);
    }
    before += values[block];
  }
  std::vector<Bucket> buckets;
  for (const trainer::GradientBucket& bucket :
       trainer::PlanGradientBuckets(ends, element_bytes, limits)) {
    const auto first = std::upper_bound(ends.begin(), ends.end(), bucket.begin) - ends.begin();
    buckets.push_back({static_cast<double>(bucket.count * element_bytes),
                       ready[static_cast<std::size_t>(first)]});
  }
  return buckets;
}

bool IsFilter(const trainer::Parameter& parameter) {
  return parameter.name.ends_with("weight") && parameter.count > 4096;
}

constexpr trainer::GradientBucketBytes kUncut = {.last =
                                                     std::numeric_limits<std::size_t>::max() / 2};

// To a tenth of a percent, as the table is written; alignment of tensors is not in it.
void ExpectLike(const std::vector<Bucket>& table, const std::vector<Bucket>& plan) {
  ASSERT_EQ(table.size(), plan.size()) << ::testing::PrintToString(plan);
  for (std::size_t i = 0; i < plan.size(); ++i) {
    EXPECT_NEAR(table[i].bytes, plan[i].bytes, 0.001 * plan[i].bytes) << i;
    EXPECT_NEAR(table[i].ready, plan[i].ready, 0.001) << i;
  }
}

TEST(ResNet50, BucketsAreThoseThatDdltraindSums) {
  const trainer::ParameterLayout layout = LayoutOfResNet50();
  const auto all = [](const trainer::Parameter&) { return true; };
  ExpectLike(ResNet50Buckets(AllReduceModel::kFp32, BucketRule::kDdltraind),
             PlanOf(layout, 4, {}, all));
  ExpectLike(ResNet50Buckets(AllReduceModel::kFp32, BucketRule::kPytorch),
             PlanOf(layout, 4, kUncut, all));
}

TEST(ResNet50, HalfSumsLeaveNormsInFp32) {
  const trainer::ParameterLayout layout = LayoutOfResNet50();
  const auto norms = [](const trainer::Parameter& parameter) { return !IsFilter(parameter); };
  for (const BucketRule rule : {BucketRule::kDdltraind, BucketRule::kPytorch}) {
    const auto limits = rule == BucketRule::kDdltraind ? trainer::GradientBucketBytes() : kUncut;
    std::vector<Bucket> plan = PlanOf(layout, 2, limits, IsFilter);
    const std::vector<Bucket> rest = PlanOf(layout, 4, limits, norms);
    plan.insert(plan.end(), rest.begin(), rest.end());
    ExpectLike(ResNet50Buckets(AllReduceModel::kHalf, rule), plan);
  }
}

TEST(ResNet50, AllGradientsAreInTheBuckets) {
  double bytes = 0;
  for (const Bucket& bucket : ResNet50Buckets(AllReduceModel::kFp32, BucketRule::kDdltraind)) {
    bytes += bucket.bytes;
  }
  EXPECT_NEAR(bytes, 4 * 25.557e6, 0.002 * bytes);  // torchvision: 25,557,032 parameters
}

}  // namespace
}  // namespace scaling
