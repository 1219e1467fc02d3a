// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/module_path.h"

#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

const std::string kName = "package/module.so";

// `directories` of a prefix have the file; returns which of them is found, "" where none is.
std::string Found(const std::vector<std::string>& directories, const std::string& name = kName) {
  const tests::TemporaryDirectory prefix;
  for (const std::string& directory : directories) prefix.Write(fs::path(directory) / kName, "");
  const std::string found = FindPackages(prefix.path(), name);
  return found.empty() ? "" : fs::path(found).lexically_relative(prefix.path()).string();
}

TEST(FindPackages, LooksWherePipPutsPackagesOfPython) {
  // As pip does in an environment, on Debian, on Fedora, for a free-threaded Python, with --target.
  for (const char* directory :
       {"lib/python3.12/site-packages", "lib/python3.11/dist-packages",
        "lib64/python3.9/site-packages", "lib/python3.13t/site-packages", "."}) {
    EXPECT_EQ(Found({directory}), directory);
  }
}

TEST(FindPackages, TakesThatOfTheNewestPython) {
  EXPECT_EQ(Found({"lib/python3.9/site-packages", "lib64/python3.10/site-packages", "."}),
            "lib64/python3.10/site-packages");
}

TEST(FindPackages, SaysWhereThereIsNone) {
  EXPECT_EQ(Found({}), "");
  EXPECT_EQ(Found({"lib/python3/site-packages", "lib/python3.x/site-packages",
                   "lib/python2.7/site-packages", "lib/ddlrun"}),
            "");
  EXPECT_EQ(Found({"lib/python3.12/site-packages"}, "another/module.so"), "");
  EXPECT_EQ(FindPackages("/nonexistent", kName), "");
}

}  // namespace
}  // namespace trainer
