// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/stale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/trainer/checkpoint/sample_run.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

TEST(RemoveStalePartials, RemovesThoseOfTheDeadOnly) {
  const ScratchDirectory scratch;
  const fs::path file = scratch.path() / "model.safetensors";
  const std::string dead = std::to_string(1 << 30);  // larger than any that the kernel gives
  const auto spill = [&](const std::string& suffix, int hours_ago) {
    const fs::path path = file.string() + suffix;
    Spill(path, "half");
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours_ago));
    return path;
  };
  const std::vector<fs::path> gone = {
      spill(".partial-" + dead, 0),  // as older versions have named them
      spill(".partial-" + HostName() + "-" + dead, 0),
      spill(".partial-other-host-1-77", 2),
  };
  const std::vector<fs::path> kept = {
      spill("", 2),
      spill(".partial-" + HostName() + "-" + std::to_string(::getppid()), 0),
      spill(".partial-other-host-2-77", 0),
      spill(".partial-notes", 2),
      spill(".old", 2),
  };
  EXPECT_EQ(RemoveStalePartials(file), 3);
  for (const fs::path& path : gone) EXPECT_FALSE(fs::exists(path)) << path;
  for (const fs::path& path : kept) EXPECT_TRUE(fs::exists(path)) << path;
  EXPECT_TRUE(PartialName(file).string().starts_with(file.string() + ".partial-"));
}

TEST(RemoveStalePartials, DoesNothingWithoutAFolder) {
  EXPECT_EQ(RemoveStalePartials("/nonexistent/model.safetensors"), 0);
}

}  // namespace
}  // namespace trainer
