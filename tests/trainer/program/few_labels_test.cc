// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <optional>

#include "tests/trainer/temporary_folder.h"
#include "trainer/data/class_list.h"
#include "trainer/program/sources.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class LabelledSource final : public Source {
 public:
  explicit LabelledSource(std::optional<std::int64_t> highest) : highest_(highest) {}
  std::int64_t samples() const override { return 1; }
  std::optional<std::int64_t> SampleHighestLabel() const override { return highest_; }
  void Seek(const Position& /*position*/) override {}
  bool Next(HostBatch& /*batch*/) override { return false; }

 private:
  std::optional<std::int64_t> highest_;
};

class FewLabelsTest : public testing::Test {
 protected:
  std::string Describe(int classes, std::optional<std::int64_t> highest) {
    Options options;
    options.classes = classes;
    options.data_dir = folder_.path().string();
    Sources sources;
    sources.training = std::make_unique<LabelledSource>(highest);
    return DescribeFewLabels(sources, options);
  }
  const TemporaryFolder folder_;
};

TEST_F(FewLabelsTest, AreSaidWhereTheyAreBelowHalfOfTheClasses) {
  EXPECT_THAT(Describe(1000, 10),
              AllOf(HasSubstr("end at 10 (in some records of all its files)"),
                    HasSubstr("--classes is 1000"), HasSubstr("--classes=10 ")));
  EXPECT_NE(Describe(1000, 499), "");
  EXPECT_NE(Describe(1001, 500), "");
  for (const std::int64_t enough : {500, 999, 1000, 1001, 5000}) {
    EXPECT_EQ(Describe(1000, enough), "") << enough;
  }
  EXPECT_EQ(Describe(2, 1), "");
  EXPECT_EQ(Describe(1000, std::nullopt), "");
  EXPECT_EQ(Describe(1000, 0), "");  // is refused when its turn comes
}

TEST_F(FewLabelsTest, AreThoseOfLabelsTxtWhereItIsOurs) {
  WriteLabels(folder_.path().string(), {{"a", ""}, {"b", ""}, {"c", ""}});
  EXPECT_THAT(Describe(10, 9), HasSubstr("end at 3 (by labels.txt there)"));
  EXPECT_EQ(Describe(5, 1), "");
  std::ofstream(folder_.path() / "labels.txt") << "0:daisy\n";
  EXPECT_EQ(Describe(10, 9), "");
}

TEST_F(FewLabelsTest, AreNotSaidOfMadeUpImages) {
  Options options;
  Sources sources;
  EXPECT_EQ(DescribeFewLabels(sources, options), "");
  sources.evaluation = std::make_unique<LabelledSource>(1);
  EXPECT_EQ(DescribeFewLabels(sources, options), "");
}

}  // namespace
}  // namespace trainer
