// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/trainer/checkpoint/sample_run.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using ::testing::HasSubstr;

Manifest Sample() {
  Manifest manifest;
  manifest.state = SampleRun(1234).state;
  manifest.state.loss_scale = 0.1;
  manifest.files = {
      {"model.safetensors", 4096, 0xdeadbeef, {{"conv1.weight", 192, 1}, {"b", 8, 2}}},
      {"optimizer.safetensors", 512, 0, {}}};
  return manifest;
}

std::string RefusalOfManifest(const std::string& text) {
  try {
    ParseManifest(text, "d/manifest.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_DATAERR);
    return error.what();
  }
  return "";
}

TEST(Manifest, HasWhatAnEvaluationHasFoundWhereThereWasOne) {
  Manifest manifest;
  EXPECT_EQ(ParseManifest(ToJson(manifest), "m").state.top1, std::nullopt);
  manifest.state.top1 = 0;
  EXPECT_EQ(ParseManifest(ToJson(manifest), "m"), manifest);
  manifest.state.top1 = 0.7512345678901234;
  EXPECT_EQ(ParseManifest(ToJson(manifest), "m"), manifest);
}

TEST(Manifest, HasSkippedImagesWhereThereAreAny) {
  Manifest manifest;
  EXPECT_THAT(ToJson(manifest), testing::Not(testing::HasSubstr("skipped_images")));
  manifest.state.skipped_images = 24;
  EXPECT_EQ(ParseManifest(ToJson(manifest), "m"), manifest);
}

// Older programs read that of SGD, and are to refuse any other.
TEST(Manifest, IsOfTheFirstFormatUnlessTheOptimizerIsNotSgd) {
  Manifest manifest;
  EXPECT_THAT(ToJson(manifest), testing::AllOf(HasSubstr("\"format\": 1,"),
                                               testing::Not(HasSubstr("\"optimizer\""))));
  EXPECT_EQ(ParseManifest(ToJson(manifest), "m").state.optimizer, "sgd");
  manifest.state.optimizer = "lars";
  EXPECT_THAT(ToJson(manifest), HasSubstr("\"format\": 2,"));
  EXPECT_EQ(ParseManifest(ToJson(manifest), "m"), manifest);
}

TEST(Manifest, ReadsBackWhatItWrote) { EXPECT_EQ(ParseManifest(ToJson(Sample()), "m"), Sample()); }

TEST(Manifest, ReadsThoseOfOlderVersions) {
  nlohmann::json json = nlohmann::json::parse(ToJson(Sample()));
  nlohmann::json& body = json["manifest"];
  ASSERT_EQ(body.erase("precision") + body.erase("settings"), 2U);
  const std::string text = body.dump();
  char checksum[9];
  std::snprintf(checksum, sizeof checksum, "%08x", Crc32c(std::as_bytes(std::span(text))));
  json["crc32c"] = checksum;
  Manifest expected = Sample();
  expected.state.precision = "";
  expected.state.settings.clear();
  EXPECT_EQ(ParseManifest(json.dump(), "m"), expected);
}

TEST(Manifest, NoFlippedBitGoesUnnoticed) {
  const std::string text = ToJson(Sample());
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      try {  // white space may change into other white space
        EXPECT_EQ(ParseManifest(flipped, "m"), Sample()) << "byte " << i << " bit " << bit;
      } catch (const Error&) {
      }
    }
  }
}

TEST(Manifest, IsRefusedWhenCutShort) {
  const std::string text = ToJson(Sample());
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    EXPECT_NE(RefusalOfManifest(text.substr(0, length)), "");
  }
}

TEST(Manifest, SaysWhatIsWrong) {
  EXPECT_THAT(RefusalOfManifest("nonsense"),
              HasSubstr("d/manifest.json: not the manifest of a checkpoint"));
  EXPECT_THAT(RefusalOfManifest("{}"), HasSubstr("manifest"));
  std::string other = ToJson(Sample());
  other.replace(other.find("1234"), 4, "1235");
  EXPECT_THAT(RefusalOfManifest(other), HasSubstr("its checksum does not fit its content"));
}

TEST(Manifest, RefusesAFormatThatNeverWas) {
  const std::string body = R"({"files":[],"format":0})";
  char crc[16];
  std::snprintf(crc, sizeof crc, "%08x", Crc32c(std::as_bytes(std::span(body))));
  EXPECT_THAT(
      RefusalOfManifest(std::string(R"({"crc32c":")") + crc + R"(","manifest":)" + body + "}"),
      HasSubstr("not the manifest of a checkpoint: there is no format 0"));
}

}  // namespace
}  // namespace trainer
