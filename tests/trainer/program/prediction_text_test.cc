// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/prediction_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace trainer {
namespace {

const std::vector<ImageClass> kClasses = {
    {"n01440764", "tench, Tinca tinca"}, {"n01443537", ""}, {"", ""}};

ImagePrediction Image(const std::string& file) {
  return {file, {{1, 0.5}, {0, 0.25}, {2, 0.125}, {3, 0.125}}, ""};
}

TEST(PredictionText, HasNamesWhereTheyAreKnown) {
  const std::vector<ImagePrediction> one = {Image("a.jpg")};
  EXPECT_EQ(FormatPredictions(one, kClasses),
            "class 1 probability 0.5 n01443537\n"
            "class 0 probability 0.25 n01440764 tench, Tinca tinca\n"
            "class 2 probability 0.125\n"
            "class 3 probability 0.125\n");
  EXPECT_EQ(FormatPredictions(one, {}).substr(0, 26), "class 1 probability 0.5\ncl");
}

TEST(PredictionText, ANameIsOneLine) {
  const std::vector<ImagePrediction> images = {{"a\nb\x1b[2J\x7f c.jpg", {}, "is no image"},
                                               {"ä.jpg", {}, "is none"}};
  EXPECT_EQ(FormatPredictions(images, {}),
            "a\\nb\\x1b[2J\\x7f c.jpg: is no image\nä.jpg: is none\n");
}

TEST(PredictionText, OfSeveralImagesHasTheirFiles) {
  const std::vector<ImagePrediction> images = {
      {"a.jpg", {{1, 1}}, ""}, {"b.gif", {}, "the image is GIF"}, {"c", {{0, 1}}, ""}};
  EXPECT_EQ(FormatPredictions(images, {}),
            "a.jpg:\nclass 1 probability 1\n"
            "b.gif: the image is GIF\n"
            "c:\nclass 0 probability 1\n");
}

TEST(PredictionText, AsJsonIsOneObjectInALine) {
  const std::vector<ImagePrediction> images = {Image("it's \"a\"\n.jpg"),
                                               {"b\xff.gif", {}, "the image is GIF"}};
  const std::string text = FormatPredictionsAsJson(images, kClasses);
  ASSERT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  const auto first = nlohmann::json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(first["file"], "it's \"a\"\n.jpg");
  ASSERT_EQ(first["classes"].size(), 4U);
  EXPECT_EQ(
      first["classes"][0],
      (nlohmann::json{{"class", 1}, {"label", 2}, {"name", "n01443537"}, {"probability", 0.5}}));
  EXPECT_EQ(first["classes"][1]["text"], "tench, Tinca tinca");
  EXPECT_FALSE(first["classes"][2].contains("name"));
  const auto second = nlohmann::json::parse(text.substr(text.find('\n') + 1));
  EXPECT_EQ(second["error"], "the image is GIF");
  EXPECT_EQ(second["file"], "b\xef\xbf\xbd.gif");
  EXPECT_FALSE(second.contains("classes"));
}

}  // namespace
}  // namespace trainer
