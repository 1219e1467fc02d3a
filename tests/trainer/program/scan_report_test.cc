// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/scan_report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "tests/trainer/temporary_folder.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/program/sources.h"

namespace trainer {
namespace {

TEST(DescribeScans, AddsUpWhatAllRanksHaveRead) {
  RunRanks(3, [](Communicator& communicator) {
    const ScanCost scanned = {1024, 1000, 1281167, 20498672, 0.734, ""};
    const ScanCost known = {1024, 0, 0, 0, 0.73, ""};
    EXPECT_EQ(
        DescribeScans(communicator.rank() == 1 ? scanned : known, "", "/run/d", communicator),
        "records of 1024 files found in 0.73 s: 1281167 headers, 20.5 MB, read by 1 of 3 ranks");
  });
}

TEST(DescribeScans, SaysWhereThePlacesOfRecordsAreWithoutAScan) {
  ThreadWorld world(1);
  ThreadCommunicator alone(world, 0);
  const ScanCost known = {1, 0, 0, 0, 0.016, ""};
  EXPECT_EQ(DescribeScans(known, "", "/run/d", alone),
            "records of 1 file found in 0.02 s: an earlier scan is in /run/d");
  EXPECT_EQ(DescribeScans(known, "/idx", "/run/d", alone),
            "records of 1 file found in 0.02 s: index files are in /idx");
}

TEST(ScanCacheFolder, IsThatOfThisUserInTheFirstFolderThatCanBeWritten) {
  const TemporaryFolder folder;
  const std::string base = folder.path().string();
  for (const char* name : {"/a", "/b", "/c"}) std::filesystem::create_directory(base + name);
  std::map<std::string, std::string> variables;
  const EnvironmentLookup get = [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  const std::string own = "/ddltraind-" + std::to_string(::geteuid());
  Options options;
  EXPECT_EQ(ScanCacheFolder(options, get), "/tmp" + own);
  variables = {
      {"XDG_RUNTIME_DIR", base + "/none"}, {"SLURM_TMPDIR", "relative"}, {"TMPDIR", base + "/c"}};
  EXPECT_EQ(ScanCacheFolder(options, get), base + "/c" + own);
  variables["SLURM_TMPDIR"] = base + "/b";
  EXPECT_EQ(ScanCacheFolder(options, get), base + "/b" + own);
  variables["XDG_RUNTIME_DIR"] = base + "/a";
  EXPECT_EQ(ScanCacheFolder(options, get), base + "/a" + own);
  options.scan_cache = "off";
  EXPECT_EQ(ScanCacheFolder(options, get), "");
}

}  // namespace
}  // namespace trainer
