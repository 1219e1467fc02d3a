// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/open_files.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "launcher/base/error.h"
#include "launcher/system/child_process.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

struct Row {
  rlim_t soft, hard;
  std::size_t more;
  rlim_t own, of_child;  // the soft limits afterwards; 0: it is refused
};

// In a process of its own, whose limits are lowered.  Says on standard error what came of it.
[[noreturn]] void Reserve(const Row& row) {
  rlimit limit = {row.soft, row.hard};
  setrlimit(RLIMIT_NOFILE, &limit);
  try {
    ReserveOpenFiles(row.more, "9 ranks");
  } catch (const LaunchError& error) {
    std::fprintf(stderr, "%d: %s\n", error.exit_code(), error.what());
    std::_Exit(0);
  }
  getrlimit(RLIMIT_NOFILE, &limit);
  CommandOutput child({"/bin/sh", "-c", "ulimit -n"}, {{"PATH", "/usr/bin:/bin"}});
  child.Wait(std::chrono::seconds(60));
  std::fprintf(stderr, "own %lu, of the child %s", static_cast<unsigned long>(limit.rlim_cur),
               child.text().c_str());
  std::_Exit(0);
}

TEST(OpenFiles, TheSoftLimitIsRaisedAndChildrenHaveTheOriginalOne) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const Row& row : {Row{64, 200, 20, 64, 64}, Row{64, 200, 100, 200, 64},
                         Row{200, 200, 100, 200, 200}, Row{64, 200, 300, 0, 0}}) {
    const std::string expected =
        row.own == 0 ? "71: 9 ranks need 3[0-9][0-9] open files, and this process may have 200: .* "
                       "ulimit -n 3[0-9][0-9] works"
                     : "own " + std::to_string(row.own) + ", of the child " +
                           std::to_string(row.of_child) + "\n";
    EXPECT_EXIT(Reserve(row), testing::ExitedWithCode(0), expected);
  }
}

}  // namespace
}  // namespace launcher
