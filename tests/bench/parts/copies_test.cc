// SPDX-License-Identifier: Apache-2.0

#include "bench/parts/copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/trainer/train/thread_ranks.h"
#include "trainer/backend/registry.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::HasSubstr;

std::string CopiesRefusal(const std::function<void(CopiesOptions&)>& change) {
  CopiesOptions options;
  change(options);
  try {
    CheckCopiesOptions(options);
  } catch (const trainer::Error& error) {
    EXPECT_EQ(error.exit_code(), EX_USAGE);
    return error.what();
  }
  return "";
}

TEST(CheckCopiesOptions, RefusesWhatMakesNoSense) {
  EXPECT_EQ(CopiesRefusal([](auto&) {}), "");
  EXPECT_EQ(CopiesRefusal([](auto& o) { o.bytes = o.rounds = 1; }), "");
  EXPECT_THAT(CopiesRefusal([](auto& o) { o.bytes = 0; }), HasSubstr("--bytes=0 must be"));
  EXPECT_THAT(CopiesRefusal([](auto& o) { o.bytes = (1LL << 34) + 1; }), HasSubstr("to 16G"));
  EXPECT_THAT(CopiesRefusal([](auto& o) { o.rounds = 0; }), HasSubstr("--rounds=0 must be"));
}

TEST(MeasureCopies, AreRatesOfBothWaysOnAllRanks) {
  trainer::RunRanks(2, [](trainer::Communicator& communicator) {
    const auto backend = trainer::MakeBackend("reference", {.threads = 1});
    CopiesOptions options;
    options.bytes = 100'001;
    options.rounds = 3;
    int copies = 0;
    const CopyRates rates = MeasureCopies(options, *backend, [&] {
      ++copies;
      communicator.Barrier();
    });
    EXPECT_EQ(copies, 2 * (1 + options.rounds));
    EXPECT_GT(rates.to_device, 0);
    EXPECT_GT(rates.to_host, 0);
  });
}

TEST(FormatCopyRow, IsARowThatTuneReads) {
  EXPECT_EQ(FormatCopyRow(3, "n2", "0004:04:00.0", "0004:00", "bound", {12.345, 6}),
            "     3  n2                0004:04:00.0  0004:00  bound      12.35       6.00\n");
}

}  // namespace
}  // namespace bench
