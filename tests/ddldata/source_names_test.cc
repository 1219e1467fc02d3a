// SPDX-License-Identifier: Apache-2.0

#include "ddldata/source_names.h"

#include "tests/support/test.h"

namespace trainer {
namespace {

TEST(SynsetInName, IsAtTheBeginningOrTheEnd) {
  const std::pair<std::string, std::string> cases[] = {
      {"n01440764_10_n01440764.JPEG", "n01440764"},
      {"a/b/n01440764_10.JPEG", "n01440764"},
      {"ILSVRC2012_val_00000293_n01440764.JPEG", "n01440764"},
      {"n01440764_10_n01440765.JPEG", ""},
      {"n01440764.JPEG", ""},
      {"n0144076_1.JPEG", ""},
      {"n014407645_1.JPEG", ""},
      {"n0144076x_1.JPEG", ""},
      {"m01440764_1.JPEG", ""},
      {"1.JPEG", ""},
  };
  for (const auto& [path, synset] : cases) EXPECT_EQ(SynsetInName(path), synset) << path;
}

TEST(AreNamesOfParts, TellsPartsFromClasses) {
  const std::pair<std::set<std::string>, bool> cases[] = {
      {{"train_images_0", "train_images_1"}, true},
      {{"train-0000-of-0002", "train-0001-of-0002"}, true},
      {{"images9", "images10"}, true},
      {{"00000", "00001"}, true},
      {{"train_images_0"}, false},
      {{}, false},
      {{"", "1"}, false},
      {{"train_0", "val_0"}, false},
      {{"n01440764", "n01443537"}, false},
      {{"0", "1", "10"}, false},
      {{"00", "01"}, false},
      {{"100", "101"}, false},
      {{"Class_0", "Class_1"}, false},
      {{"label1", "label2"}, false},
      {{"cat", "dog"}, false},
  };
  for (const auto& [names, are_parts] : cases) {
    EXPECT_EQ(AreNamesOfParts(names), are_parts) << ::testing::PrintToString(names);
  }
}

TEST(RootOfClasses, IsWhatAllDirectoriesLieIn) {
  const std::pair<std::set<std::string>, std::string> cases[] = {
      {{}, ""},
      {{"cat/"}, ""},
      {{"train/cat/"}, "train/"},
      {{"cat/", "dog/"}, ""},
      {{"cat/", "cats/"}, ""},
      {{"train/cat/", "train/dog/"}, "train/"},
      {{"a/train/cat/2020/", "a/train/cat/2021/", "a/train/dog/2020/"}, "a/train/"},
      {{"train/cat/", "val/cat/"}, ""},
      {{"train/", "train/cat/"}, "train/"},
  };
  for (const auto& [directories, root] : cases) {
    EXPECT_EQ(RootOfClasses(directories), root) << ::testing::PrintToString(directories);
  }
}

}  // namespace
}  // namespace trainer
