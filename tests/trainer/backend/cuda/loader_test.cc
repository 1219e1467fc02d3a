// SPDX-License-Identifier: Apache-2.0
//
// The module that this build made is loaded, and what is not that module is refused.

#include "trainer/backend/cuda/loader.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include "tests/support/directories.h"
#include "tests/support/test.h"
#include "trainer/backend/cuda/cuda_backend.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

const std::string kModule = tests::BuildDirectory() + "/lib/ddlrun/ddltrain_cuda.so";

// Modules that this directory's CMakeLists.txt makes.
LoadedModule LoadTestModule(const std::string& name) {
  return LoadCudaModule(tests::BuildDirectory() + "/tests/" + name + ".so");
}

bool ProcessMaps(const std::string& library) {
  std::ostringstream maps;
  maps << std::ifstream("/proc/self/maps").rdbuf();
  return maps.str().find(library) != std::string::npos;
}

// The first test: those behind it load CUDA.
TEST(CudaLoader, AProgramHasNoCudaBeforeItAsksForIt) {
  EXPECT_FALSE(ProcessMaps("libcudnn"));
  EXPECT_FALSE(ProcessMaps("libcudart"));
}

TEST(CudaLoader, LoadsTheModuleOfThisBuild) {
  const LoadedModule loaded = LoadCudaModule(kModule);
  ASSERT_NE(loaded.module, nullptr) << loaded.problem;
  EXPECT_STREQ(loaded.module->build, kCudaModuleBuild);
  EXPECT_TRUE(ProcessMaps("libcudnn"));
}

TEST(CudaLoader, ErrorsOfTheModuleAreErrorsOfTheProgram) {
  const LoadedModule loaded = LoadCudaModule(kModule);
  ASSERT_NE(loaded.module, nullptr) << loaded.problem;
  const std::string problem = loaded.module->problem();
  if (problem.empty()) GTEST_SKIP() << "there is a GPU";
  try {
    loaded.module->make({});
    ADD_FAILURE() << "made without a GPU";
  } catch (const std::exception& error) {
    const auto* known = dynamic_cast<const Error*>(&error);
    ASSERT_NE(known, nullptr) << error.what();
    EXPECT_EQ(known->exit_code(), EX_UNAVAILABLE);
    EXPECT_THAT(known->what(), StartsWith(problem));
  }
}

TEST(CudaLoader, AModuleWithAnotherCxxLibraryIsToldOfTheExceptionsOfTheProgram) {
  const std::string path = tests::BuildDirectory() + "/tests/module_of_another_build.so";
  LoadCudaModule(path);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  const auto* shared = static_cast<void* (**)()>(dlsym(library, "shared_exceptions"));
  ASSERT_NE(shared, nullptr);
  ASSERT_NE(*shared, nullptr);
  EXPECT_EQ((*shared)(), static_cast<void*>(abi::__cxa_get_globals()));
}

TEST(CudaLoader, KnowsWhereTheModuleIsWithoutLoadingIt) { EXPECT_EQ(CudaModuleFile(), kModule); }

TEST(CudaLoader, NamesTheDriverThatIsNotThere) {
  EXPECT_THAT(DriverProblem("libcuda-of-nobody.so.1"),
              AllOf(StartsWith("no GPU: there is no NVIDIA driver (libcuda-of-nobody.so.1: "),
                    HasSubstr("No such file or directory")));
  EXPECT_EQ(DriverProblem("libc.so.6"), "");
}

TEST(CudaLoader, SaysWhereAModuleThatIsNotInstalledIsLookedFor) {
  const LoadedModule loaded = LoadTestModule("absent");
  EXPECT_EQ(loaded.module, nullptr);
  EXPECT_THAT(loaded.problem, AllOf(StartsWith("the cuda back end is not installed: "),
                                    HasSubstr("/tests/absent.so")));
}

TEST(CudaLoader, NamesTheLibraryThatIsMissing) {
  const LoadedModule loaded = LoadTestModule("module_without_library");
  EXPECT_EQ(loaded.module, nullptr);
  EXPECT_THAT(loaded.problem,
              AllOf(StartsWith("the cuda back end cannot be loaded: missing_library.so: "),
                    HasSubstr("No such file or directory"), HasSubstr("ldd "),
                    EndsWith("LD_LIBRARY_PATH")));
}

TEST(CudaLoader, RejectsAFileThatIsNoLibrary) {
  const LoadedModule loaded = LoadCudaModule(tests::SourceDirectory() + "/README.md");
  EXPECT_EQ(loaded.module, nullptr);
  EXPECT_THAT(loaded.problem, HasSubstr("README.md"));
}

TEST(CudaLoader, RejectsALibraryThatIsNoModule) {
  const LoadedModule loaded = LoadTestModule("missing_library");
  EXPECT_EQ(loaded.module, nullptr);
  EXPECT_THAT(loaded.problem, EndsWith("missing_library.so is not the cuda back end of ddltraind"));
}

TEST(CudaLoader, RejectsAModuleOfAnotherBuild) {
  const LoadedModule loaded = LoadTestModule("module_of_another_build");
  EXPECT_EQ(loaded.module, nullptr);
  EXPECT_THAT(loaded.problem,
              AllOf(HasSubstr("is of another build (0.0.1, of long ago) than this program ("),
                    HasSubstr(kCudaModuleBuild)));
}

}  // namespace
}  // namespace trainer
