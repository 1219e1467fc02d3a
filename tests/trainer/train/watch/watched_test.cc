// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/watch/watched.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/temporary_folder.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using testing::HasSubstr;

class BrokenSource : public Source {
 public:
  std::int64_t samples() const override { return 0; }
  void Seek(const Position&) override {}
  bool Next(HostBatch&) override { throw Error(EX_DATAERR, "a bad record"); }
};

class BrokenCommunicator : public ThreadCommunicator {
 public:
  using ThreadCommunicator::ThreadCommunicator;
  void Barrier() override { throw Error(EX_OSERR, "a bad network"); }
};

TEST(Watched, AWaitThatThrowsIsOver) {
  const TemporaryFolder folder;
  HangWatch watch({.model_dir = folder.path(),
                   .run_name = "1",
                   .host = "n1",
                   .on_hang = [](const std::string&) {}});
  BrokenSource source;
  HostBatch batch;
  EXPECT_THROW(MakeWatchedSource(source, watch)->Next(batch), Error);
  EXPECT_THAT(watch.Describe(), HasSubstr("at work of its own"));
  ThreadWorld world(1);
  BrokenCommunicator communicator(world, 0);
  EXPECT_THROW(MakeWatchedCommunicator(communicator, watch)->Barrier(), Error);
  EXPECT_THAT(watch.Describe(), HasSubstr("at work of its own"));
}

}  // namespace
}  // namespace trainer
