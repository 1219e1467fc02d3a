// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/trainer/temporary_folder.h"

namespace trainer {
namespace {

struct FileRefusal {
  int exit_code = 0;
  std::string message;
  bool is_shortage = false;
};

FileRefusal RefusalOf(const std::function<void()>& action) {
  try {
    action();
    return {};
  } catch (const Shortage& error) {
    return {error.exit_code(), error.what(), true};
  } catch (const Error& error) {
    return {error.exit_code(), error.what(), false};
  }
}

// As long as it lives no descriptor can be had; sanitizers want some to look at an exception.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &usual_);
    const rlimit none{0, usual_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &usual_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit usual_{};
};

class CoreFileTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }

  TemporaryFolder folder_;
};

TEST_F(CoreFileTest, IsWrittenAndReadWhole) {
  WriteWholeFile(Path("a"), "text");
  EXPECT_EQ(ReadWholeFile(Path("a")), "text");
  EXPECT_EQ(FileSize(OpenForReading(Path("a")), Path("a")), 4U);
}

TEST_F(CoreFileTest, ThatIsMissingIsBadInput) {
  const FileRefusal refusal = RefusalOf([&] { ReadWholeFile(Path("a")); });
  EXPECT_EQ(refusal.exit_code, EX_DATAERR);
  EXPECT_EQ(refusal.message, "cannot open " + Path("a") + ": No such file or directory");
}

// A later try may succeed.
TEST_F(CoreFileTest, ThatCannotBeOpenedIsTheSystemsFault) {
  std::filesystem::create_symlink("a", Path("a"));
  const FileRefusal refusal = RefusalOf([&] { OpenForReading(Path("a")); });
  EXPECT_EQ(refusal.exit_code, EX_OSERR);
  EXPECT_FALSE(refusal.is_shortage);
}

TEST_F(CoreFileTest, TellsALackOfDescriptorsFromABadFile) {
  WriteWholeFile(Path("a"), "text");
  const FileRefusal refusal = RefusalOf([&] {
    const NoDescriptors none;
    ReadWholeFile(Path("a"));
  });
  EXPECT_EQ(refusal.exit_code, EX_OSERR);
  EXPECT_TRUE(refusal.is_shortage) << refusal.message;
}

TEST_F(CoreFileTest, ThatIsTooLongIsRefused) {
  WriteWholeFile(Path("a"), "text");
  const FileRefusal refusal = RefusalOf([&] { ReadWholeFile(Path("a"), 3); });
  EXPECT_EQ(refusal.exit_code, EX_DATAERR);
  EXPECT_EQ(refusal.message, Path("a") + " has 4 bytes, more than the 3 that such a file may have");
}

// A reader that waits for a pipe's writer would wait for ever.
TEST_F(CoreFileTest, DoesNotWaitForAPipe) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  const FileRefusal refusal = RefusalOf([&] { ReadWholeFile(Path("pipe")); });
  EXPECT_EQ(refusal.exit_code, EX_DATAERR);
  EXPECT_EQ(refusal.message, Path("pipe") + " is not a regular file");
}

TEST_F(CoreFileTest, SaysWhyItCannotBeWritten) {
  EXPECT_EQ(RefusalOf([&] { NewFile file(Path("none/a")); }).message,
            "cannot create " + Path("none/a") + ": No such file or directory");
  std::filesystem::create_directory(Path("folder"));
  const FileRefusal refusal = RefusalOf([&] { WriteWholeFile(Path("folder"), "text"); });
  EXPECT_EQ(refusal.exit_code, EX_OSERR);
  EXPECT_EQ(refusal.message, "cannot give its name to " + Path("folder") + ": Is a directory");
}

}  // namespace
}  // namespace trainer
