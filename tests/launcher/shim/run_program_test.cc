// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/run_program.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "tests/support/test.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

// The exit code of `program` with the argument "7", started in `directory`.
int ExitCodeOf(std::string program, const std::string& path, const std::string& directory = "/") {
  const pid_t child = fork();
  if (child == 0) {
    if (chdir(directory.c_str()) != 0) _exit(100);
    std::string argument = "7";
    char* const argv[] = {program.data(), argument.data(), nullptr};
    setenv("PATH", path.c_str(), 1);
    _exit(100 + BecomeProgram(argv, path.c_str()));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(BecomeProgram, StartsAScriptWithoutAnInterpreterLineAsAShellDoes) {
  const fs::path directory = fs::path(testing::TempDir()) / "become_program";
  fs::create_directories(directory);
  std::ofstream(directory / "script") << "exit \"$1\"\n";
  chmod((directory / "script").c_str(), 0755);
  EXPECT_EQ(ExitCodeOf(directory / "script", ""), 7);
  EXPECT_EQ(ExitCodeOf("script", "/nowhere:" + directory.string()), 7);
  EXPECT_EQ(ExitCodeOf("script", "/nowhere"), 100 + ENOENT);
  for (const std::string path : {":/nowhere", "/nowhere:", "/nowhere::/"}) {
    EXPECT_EQ(ExitCodeOf("script", path, directory), 7) << path;  // an empty entry is where one is
  }
  fs::remove_all(directory);
}

}  // namespace
}  // namespace launcher
