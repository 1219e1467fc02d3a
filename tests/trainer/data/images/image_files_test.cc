// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/image_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ImageFilesTest : public ::testing::Test {
 protected:
  fs::path Make(const std::string& name) {
    const fs::path path = root_ / name;
    fs::create_directories(path.parent_path());
    WriteText(path.string(), "x");
    return path;
  }
  const TempDir dir_;
  const fs::path root_ = dir_ / "images";
};

TEST_F(ImageFilesTest, FilesAreTakenWhateverTheirNamesInTheOrderGiven) {
  const fs::path b = Make("b.JPEG");
  const fs::path a = Make("a");
  const fs::path hidden = Make(".c");
  const std::vector<fs::path> given = {b, a, hidden, b};
  EXPECT_THAT(FindImageFiles(given), ElementsAre(b, a, hidden, b));
}

TEST_F(ImageFilesTest, FoldersAreTakenWithAllImagesBelow) {
  const fs::path last = Make("z.png");
  const fs::path deep = Make("cat/2020/one.jpg");
  const fs::path upper = Make("A.JPEG");
  Make("notes.txt");
  Make("cat/.hidden.jpg");
  Make(".git/x.jpg");
  Make("lost+found/x.jpg");
  const fs::path other = Make("other");
  const std::vector<fs::path> given = {other, root_};
  EXPECT_THAT(FindImageFiles(given), ElementsAre(other, upper, deep, last));
}

TEST_F(ImageFilesTest, RefusesWhatIsNotThereOrHasNoImages) {
  Make("texts/a.txt");
  const auto refusal = [&](const fs::path& path) {
    const std::vector<fs::path> given = {path};
    return DataErrorOf([&] { FindImageFiles(given); });
  };
  EXPECT_THAT(refusal(root_ / "absent.jpg"), HasSubstr("absent.jpg: No such file"));
  EXPECT_THAT(refusal(root_ / "texts"), HasSubstr("texts has no images"));
  fs::create_directory_symlink(root_, root_ / "texts" / "round");
  EXPECT_THAT(refusal(root_ / "texts"), HasSubstr("a link to a folder above?"));
}

}  // namespace
}  // namespace trainer
