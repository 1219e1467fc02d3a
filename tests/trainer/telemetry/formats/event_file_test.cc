// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <sstream>

#include "tests/trainer/temporary_folder.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using ::testing::HasSubstr;

const TimePoint kNow{std::chrono::milliseconds(1593597600500)};

std::string BytesOf(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::string ContentOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The vectors are made by hand from the formats of TFRecord and protobuf, the checksums by the bit
// by bit definition of CRC-32C (tests/e2e/ddltraind/read_logs.py has it).
TEST(EventRecords, AreFramedAndEncodedAsTensorboardReadsThem) {
  EXPECT_EQ(
      VersionRecord(kNow),
      BytesOf("1800000000000000a37f4b2209000020a817bfd7411a0d627261696e2e4576656e743a32cc3970a7"));
  EXPECT_EQ(SessionRecord(kNow, 300),
            BytesOf("100000000000000095fbfe1809000020a817bfd74110ac023a0208017089fd3a"));
  EXPECT_EQ(
      ScalarsRecord(kNow, 5, std::array<Scalar, 2>{{{"a/b", 0.5}, {"c", -2}}}),
      BytesOf("2300000000000000b09f774309000020a817bfd74110052a160a0a0a03612f62150000003f0a080a"
              "016315000000c0f02a2c91"));
}

// In the place of a value that is left out TensorBoard would see none.
TEST(EventRecords, HaveAValueThatIsZero) {
  const std::string record = ScalarsRecord(kNow, 5, std::array<Scalar, 1>{{{"c", 0}}});
  EXPECT_THAT(record, HasSubstr(BytesOf("0a0163"
                                        "1500000000")));
}

TEST(EventFile, BeginsWithTheVersionAndGoesOnWithWhatItIsTold) {
  TemporaryFolder folder;
  EventFile file(
      folder.path(), "gpu025", "another one", [](int) {}, [] { return kNow; });
  EXPECT_THAT(file.path().filename(), HasSubstr("events.out.tfevents.1593597600.gpu025."));
  EXPECT_EQ(ContentOf(file.path()), VersionRecord(kNow));
  file.StartTraining({.first_step = 3});
  file.Step({.step = 3});  // is not displayed
  file.EndEvaluation(
      {.step = 4, .top1 = 0.5, .top5 = 0.75, .cross_entropy = 2, .images_per_second = 100});
  const std::array<Scalar, 4> scalars = {{{"evaluation/top1", 0.5},
                                          {"evaluation/top5", 0.75},
                                          {"evaluation/cross_entropy", 2},
                                          {"evaluation/images_per_second", 100}}};
  EXPECT_EQ(ContentOf(file.path()),
            VersionRecord(kNow) + SessionRecord(kNow, 3) + ScalarsRecord(kNow, 3, scalars));
  file.Step({.step = 4, .is_displayed = true});
  EXPECT_THAT(ContentOf(file.path()), HasSubstr("train/loss_scale"));
  EXPECT_EQ(file.lost_events(), 0);
}

TEST(EventFile, RefusesAFolderThatIsNotThereAndAFileThatIs) {
  TemporaryFolder folder;
  const auto make = [&](const std::filesystem::path& place) -> std::string {
    try {
      EventFile(
          place, "h", "another --tensorboard_dir", [](int) {}, [] { return kNow; });
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), EX_OSERR);
      return error.what();
    }
    return "made";
  };
  EXPECT_THAT(
      make(folder.path() / "x"),
      HasSubstr(": No such file or directory; check it, or give another --tensorboard_dir"));
  EXPECT_EQ(make(folder.path()), "made");
  EXPECT_THAT(make(folder.path()), HasSubstr("File exists"));
}

}  // namespace
}  // namespace trainer
