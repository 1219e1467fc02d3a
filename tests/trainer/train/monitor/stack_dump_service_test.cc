// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/monitor/stack_dump_service.h"

#include <sys/stat.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "support/file.h"
#include "tests/support/test.h"
#include "tests/trainer/temporary_directory.h"
#include "trainer/control/stack_dump_request.h"

namespace trainer {
namespace {

using testing::HasSubstr;

// Ranks 0 and 1 in this process.
class StacksOnRequestTest : public testing::Test {
 protected:
  StacksOnRequestTest() {
    MakeStackDumpRequest(request(), {.directory = directory_.path() / kStackDumpDirectoryName,
                                     .ranks = {{"n1", 1}, {"n2", 2}}});
  }
  std::filesystem::path request() const { return directory_.path() / kStackDumpRequestName; }
  std::unique_ptr<StackDumpService> Make(int rank) {
    return std::make_unique<StackDumpService>(
        StackDumpServiceOptions{.request = request(),
                                .model_dir = directory_.path(),
                                .rank = rank,
                                .host = "n" + std::to_string(rank + 1),
                                .seconds_between_looks = 0.01,
                                .doing = doing_,
                                .answer_time = std::chrono::seconds(10)});
  }
  std::optional<RankStackTraces> Read(int rank) const {
    return ParseRankStackTraces(
        support::ReadWholeFile(
            directory_.path() / kStackDumpDirectoryName / StackDumpFileName(rank), 1 << 24)
            .content);
  }
  // What the rank writes to that order; it is waited for.
  RankStackTraces AnswerOf(int rank, std::uint64_t command) const {
    for (;;) {
      if (const auto stacks = Read(rank); stacks && stacks->command == command) return *stacks;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  const TemporaryDirectory directory_;
  std::function<std::string()> doing_ = [] { return "in training, step 17"; };
};

TEST_F(StacksOnRequestTest, AllRanksAnswerWhatRankZeroIsAsked) {
  const auto first = Make(0);
  const auto second = Make(1);
  const std::uint64_t command = first->Ask();
  EXPECT_THAT(AnswerOf(0, command).headline,
              testing::MatchesRegex("rank 0 on n1, process [0-9]+: in training, step 17"));
  const RankStackTraces answer = AnswerOf(1, command);
  EXPECT_THAT(answer.headline, HasSubstr("rank 1 on n2, process "));
  EXPECT_THAT(answer.stacks, HasSubstr("AllRanksAnswerWhatRankZeroIsAsked"));
  const std::uint64_t next = first->Ask();
  EXPECT_GT(next, command);
  EXPECT_EQ(AnswerOf(1, next).command, next);
  EXPECT_EQ(AnswerOf(0, next).command, next);
}

TEST_F(StacksOnRequestTest, TheyAnswerTheFileAloneWhereRankZeroIsStopped) {
  const auto second = Make(1);
  ASSERT_EQ(WriteStackDumpCommand(request(), 5), 0);
  EXPECT_EQ(AnswerOf(1, 5).command, 5U);
}

TEST_F(StacksOnRequestTest, AnOrderThatCannotBeWrittenIsWrittenOnceItCan) {
  const auto first = Make(0);
  const auto second = Make(1);
  std::filesystem::remove(request());
  const std::uint64_t command = first->Ask();
  EXPECT_EQ(AnswerOf(0, command).command, command);  // it has tried to write it
  MakeStackDumpRequest(request(),
                       {.directory = directory_.path() / kStackDumpDirectoryName, .ranks = {}});
  EXPECT_EQ(AnswerOf(1, command).command, command);
  EXPECT_EQ(ReadStackDumpCommand(request()), command);
}

TEST_F(StacksOnRequestTest, AnExceptionCostsOneAnswer) {
  std::atomic<int> calls = 0;
  doing_ = [&]() -> std::string {
    if (++calls == 1) throw std::runtime_error("no memory");
    return "in training";
  };
  const auto first = Make(0);
  first->Ask();
  while (calls == 0) std::this_thread::yield();
  const std::uint64_t next = first->Ask();
  EXPECT_EQ(AnswerOf(0, next).command, next);
}

TEST_F(StacksOnRequestTest, EndsThoughAPipeIsInThePlaceOfTheFile) {
  std::filesystem::remove(request());
  ASSERT_EQ(::mkfifo(request().c_str(), 0600), 0);
  auto second = Make(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // several looks
  second.reset();
}

TEST_F(StacksOnRequestTest, AnswersAnOrderOnce) {
  auto first = Make(0);
  const std::uint64_t command = first->Ask();
  AnswerOf(0, command);
  std::filesystem::remove_all(directory_.path() / kStackDumpDirectoryName);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // several looks
  first.reset();
  EXPECT_FALSE(Read(0));
}

TEST_F(StacksOnRequestTest, OfAFileWithoutAnOrderNothingComes) {
  auto second = Make(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // several looks
  second.reset();
  EXPECT_FALSE(Read(1));
}

}  // namespace
}  // namespace trainer
