// SPDX-License-Identifier: Apache-2.0

#include "support/build.h"

#include "tests/support/test.h"

namespace support {
namespace {

TEST(Build, VersionIsThreeNumbers) {
  EXPECT_THAT(ProgramVersion(), MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

// Every optional library is in one of the lines of the part that links it.
TEST(Build, SaysWhatItWasBuiltWithAndWithout) {
  for (const Part part : {Part::kLauncher, Part::kTrainer}) {
    const std::string text = BuildText(part);
    EXPECT_THAT(text, MatchesRegex("built with: [^\n]+(\nbuilt without: [^\n]+)?"));
    for (const std::string name :
         {"PMIx", "UCX", "oneDNN", "CUDA", "cuDNN", "NCCL", "NVTX", "MPI", "libpng"}) {
      const bool is_of_launcher = name == "PMIx" || name == "UCX";
      const std::size_t first = text.find(name);
      EXPECT_EQ(first != std::string::npos, is_of_launcher == (part == Part::kLauncher)) << name;
      EXPECT_EQ(text.find(name, first + 1), std::string::npos) << name;
    }
  }
}

TEST(Build, SaysWhichGpusItHasCodeFor) {
  const bool has_cuda = BuildText(Part::kTrainer).find("back end cuda") != std::string::npos;
  EXPECT_EQ(has_cuda, !GpusOfBuild().empty());
  if (!has_cuda) return;
  EXPECT_THAT(BuildText(Part::kTrainer), HasSubstr("(back end cuda, for " + GpusOfBuild() + ")"));
  EXPECT_THAT(GpusOfBuild(),
              MatchesRegex("compute capability ([0-9]+[.][0-9][af]?|all|all-major|native)(, "
                           "[0-9]+[.][0-9][af]?)*(, later ones by PTX of [0-9.]+)?"));
}

}  // namespace
}  // namespace support
