// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/pmi_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(MpiList, IsReadAsEachVersionPrintsIt) {
  // 20.11.4, on standard error.
  EXPECT_THAT(ParseMpiList("srun: MPI types are...\nsrun: pmix\nsrun: pmix_v4\nsrun: none\n"
                           "srun: cray_shasta\nsrun: pmi2\n"),
              ElementsAre("pmix", "pmix_v4", "none", "cray_shasta", "pmi2"));
  // 22.05.8.
  EXPECT_THAT(ParseMpiList("MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\n"
                           "specific pmix plugin versions available: pmix_v4\n"),
              ElementsAre("pmix", "none", "cray_shasta", "pmi2", "pmix_v4"));
  // With two versions of PMIx, and 26.05.5, which has none.
  EXPECT_THAT(ParseMpiList("\tnone\nspecific pmix plugin versions available: pmix_v4,pmix_v5\n"),
              ElementsAre("none", "pmix_v4", "pmix_v5"));
  EXPECT_THAT(ParseMpiList("MPI plugin types are...\n\tnone\n\tpmi2\n\tcray_shasta\n"),
              ElementsAre("none", "pmi2", "cray_shasta"));
}

TEST(MpiList, OfATextOfMessagesIsEmpty) {
  EXPECT_THAT(ParseMpiList("srun: error: plugin_load_from_file: no pmix\n"), IsEmpty());
  EXPECT_THAT(ParseMpiList(""), IsEmpty());
}

TEST(MpiType, IsThePmiItselfOrTheNewestVersionOfPmix) {
  const std::vector<std::string> both = {"pmix_v5", "none", "pmix", "pmi2"};
  EXPECT_EQ(FindMpiType("pmix", both), "pmix");
  EXPECT_EQ(FindMpiType("pmi2", both), "pmi2");
  EXPECT_EQ(FindMpiType("none", both), "none");
  EXPECT_EQ(FindMpiType("pmix", {"none", "pmix_v4", "pmix_v10", "pmix_v5"}), "pmix_v10");
  EXPECT_EQ(FindMpiType("pmix", {"none", "pmi2"}), "");
  EXPECT_EQ(FindMpiType("pmi2", {"none", "pmix_v4"}), "");
  EXPECT_EQ(FindMpiType("none", {}), "");
}

}  // namespace
}  // namespace launcher
