// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/binding.h"

#include <sched.h>

#include <thread>

#include "tests/support/test.h"

namespace launcher {
namespace {

using ::testing::HasSubstr;

TEST(Binding, BindsToTheCpusAndRejectsOneThatIsNotThere) {
  // In a thread of its own: the affinity of the others stays.
  std::thread([] {
    const std::string cpu = std::to_string(sched_getcpu());
    EXPECT_STREQ(BindCpus(cpu.c_str()).text, "");
    EXPECT_EQ(std::to_string(sched_getcpu()), cpu);
    EXPECT_EQ(CountUsableCpus(), 1);
    EXPECT_THAT(BindCpus((cpu + ",8000").c_str()).text, HasSubstr("CPU 8000 is not there"));
    EXPECT_THAT(BindCpus("8000-8001").text, HasSubstr("none of the planned CPUs can be used"));
    EXPECT_STREQ(PreferMemoryOf(0).text, "");
  }).join();
}

TEST(Binding, RejectsWhatAreNoCpus) {
  for (const char* list : {"", "-", "x", "3-1", "0-9999", "0,", "0;1"}) {
    EXPECT_THAT(BindCpus(list).text, HasSubstr("are no CPUs")) << list;
  }
}

}  // namespace
}  // namespace launcher
