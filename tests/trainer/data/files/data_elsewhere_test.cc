// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/data_elsewhere.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class SayWhatIsThereTest : public ::testing::Test {
 protected:
  void Make(const std::string& file) {
    const fs::path path = fs::path(dir_.path()) / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
  }
  std::string Say() const { return SayWhatIsThere(dir_.path()); }

  TempDir dir_;
};

TEST_F(SayWhatIsThereTest, IsNothingOfAnEmptyFolderNorOfNone) {
  EXPECT_EQ(Say(), "");
  EXPECT_EQ(SayWhatIsThere("/no/such/folder"), "");
  Make("notes.txt");
  EXPECT_EQ(Say(), "");
}

TEST_F(SayWhatIsThereTest, IsNothingOfTheOtherSplitWhereItBelongs) {
  Make("train-00000-of-00002");
  EXPECT_EQ(Say(), "");
  EXPECT_EQ(SayWhatIsThere(dir_.path() + "/"), "");
}

TEST_F(SayWhatIsThereTest, NamesDataFilesInAFolderOfTheirOwnAndHowToLinkThem) {
  Make("validation/validation-00000-of-00001");
  EXPECT_THAT(Say(), HasSubstr("validation-00000-of-00001 is in one of its own"));
  EXPECT_THAT(Say(), EndsWith("ln -s " + dir_.path() + "/validation/* " + dir_.path()));
  Make("imagenet/train/train-00000-of-00001");
  EXPECT_THAT(Say(), HasSubstr("validation-00000-of-00001"));  // the nearest
}

TEST_F(SayWhatIsThereTest, QuotesWhatAShellWouldTakeApart) {
  Make("my data/train/train-00000-of-00001");
  const std::string folder = dir_.path() + "/my data";
  EXPECT_THAT(SayWhatIsThere(folder), EndsWith("ln -s '" + folder + "/train'/* '" + folder + "'"));
}

TEST_F(SayWhatIsThereTest, GivesLinksThatHoldFromARelativeFolder) {
  Make("data/train/train-00000-of-00001");
  const fs::path before = fs::current_path();
  fs::current_path(dir_.path());
  const std::string text = SayWhatIsThere("data");
  const fs::path here = fs::current_path();
  fs::current_path(before);
  EXPECT_THAT(text, EndsWith("ln -s " + (here / "data/train").string() + "/* data"));
}

TEST_F(SayWhatIsThereTest, KnowsTensorFlowDatasets) {
  Make("5.1.0/imagenet2012-train.tfrecord-00000-of-01024");
  EXPECT_THAT(Say(), HasSubstr("01024 is of TensorFlow Datasets"));
}

TEST_F(SayWhatIsThereTest, KnowsImagesAndTarsOfThemTwoFoldersDown) {
  Make("train/n01440764/n01440764_10026.JPEG");
  EXPECT_THAT(Say(), EndsWith("n01440764_10026.JPEG, with: ddldata convert"));
  Make("ILSVRC2012_img_train.tar");
  EXPECT_THAT(Say(), EndsWith("ILSVRC2012_img_train.tar, with: ddldata convert"));
}

TEST_F(SayWhatIsThereTest, LooksNoDeeper) {
  Make("a/b/c/d.jpg");
  EXPECT_EQ(Say(), "");
}

}  // namespace
}  // namespace trainer
