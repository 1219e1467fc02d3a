// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/launcher.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

std::string TextOf(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(PlainPath, HasNeitherColonNorDash) {
  const std::string directory = testing::TempDir() + "plain_path_test";
  fs::create_directories(directory);
  for (const std::string name : {"my-ranks", "my:ranks", "ranks"}) {
    const std::string path = directory + "/" + name;
    std::ofstream(path) << "rank of " << name;
    const PlainPath plain(path);
    EXPECT_THAT(plain.path(), testing::Not(testing::ContainsRegex("[:-]")));
    EXPECT_EQ(TextOf(plain.path()), "rank of " + name);
    EXPECT_EQ(TextOf(plain.path()), "rank of " + name);  // as often as one likes
  }
  fs::remove_all(directory);
}

TEST(PlainPath, IsClosedAtItsEnd) {
  const std::string path = testing::TempDir() + "plain-path-test";
  std::ofstream(path) << "ranks";
  std::string plain;
  {
    const PlainPath open(path);
    plain = open.path();
    EXPECT_TRUE(fs::exists(plain));
  }
  EXPECT_FALSE(fs::exists(plain));
  fs::remove(path);
}

TEST(PlainPath, LeavesAPathAloneThatNeedsNoneOrIsNotThere) {
  EXPECT_EQ(PlainPath("ranks.txt").path(), "ranks.txt");
  EXPECT_EQ(PlainPath("/nonexistent/my-ranks").path(), "/nonexistent/my-ranks");
}

}  // namespace
}  // namespace launcher
