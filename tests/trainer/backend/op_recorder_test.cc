// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/op_recorder.h"

#include "tests/support/test.h"

namespace trainer {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class NoStream final : public Stream {
 public:
  void Synchronize() override {}
};

// Reads a clock that the test sets.
class SetEvent final : public Event {
 public:
  explicit SetEvent(const double& now) : now_(now) {}
  void Record(Stream&) override { time_ = now_; }
  void MakeWait(Stream&) override {}
  void Synchronize() override {}
  double SecondsSince(const Event& earlier) const override {
    return time_ - static_cast<const SetEvent&>(earlier).time_;
  }

 private:
  const double& now_;
  double time_ = 0;
};

class OpRecorderTest : public testing::Test {
 protected:
  void Call(int op, double seconds, const void* parameter = nullptr) {
    recorder_.Run(op, parameter, stream_, [&] { now_ += seconds; });
  }

  double now_ = 0;
  int events_ = 0;
  NoStream stream_;
  OpRecorder recorder_{[this] {
    ++events_;
    return std::make_unique<SetEvent>(now_);
  }};
};

TEST_F(OpRecorderTest, AddsUpTheCallsOfEachOp) {
  const int first = recorder_.Add({"a", "forward", "1x2", {3, 4}});
  const int second = recorder_.Add({"b", "forward", "1x2", {5, 6}});
  recorder_.Add({"c", "never called", "1x2", {}});
  recorder_.Start();
  Call(first, 0.5);
  Call(second, 2);
  Call(first, 0.25);
  recorder_.Collect();
  Call(second, 4);
  recorder_.Collect();
  const std::vector<ProfiledOp> ops = recorder_.Ops();
  ASSERT_THAT(ops, SizeIs(2));
  EXPECT_EQ(ops[0].layer, "a");
  EXPECT_EQ(ops[0].calls, 2);
  EXPECT_DOUBLE_EQ(ops[0].seconds, 0.75);
  EXPECT_EQ(ops[0].work, (OpWork{3, 4}));
  EXPECT_EQ(ops[1].calls, 2);
  EXPECT_DOUBLE_EQ(ops[1].seconds, 6);
}

TEST_F(OpRecorderTest, DoesTheWorkAndRecordsNothingWhileItIsOff) {
  const int op = recorder_.Add({"a", "forward", "1x2", {}});
  Call(op, 1);
  recorder_.Start();
  recorder_.Stop();
  Call(op, 1);
  recorder_.Collect();
  EXPECT_EQ(now_, 2);
  EXPECT_THAT(recorder_.Ops(), IsEmpty());
  EXPECT_EQ(events_, 0);
}

TEST_F(OpRecorderTest, ForgetsWhatWasRecordedWhenItStartsAgain) {
  const int op = recorder_.Add({"a", "forward", "1x2", {}});
  recorder_.Start();
  Call(op, 1);
  recorder_.Collect();
  Call(op, 1);
  recorder_.Stop();
  now_ += 1000;
  recorder_.Start();
  EXPECT_THAT(recorder_.Ops(), IsEmpty());
  Call(op, 4);
  double begin = -1;
  recorder_.Collect([&](const RecordedOp& call) { begin = call.begin; });
  ASSERT_THAT(recorder_.Ops(), SizeIs(1));
  EXPECT_EQ(recorder_.Ops()[0].calls, 1);
  EXPECT_DOUBLE_EQ(recorder_.Ops()[0].seconds, 4);
  EXPECT_GE(begin, 0);
  EXPECT_LT(begin, 60) << "seconds from the second Start";
}

TEST_F(OpRecorderTest, TakesNoMoreMemoryForTheNextStep) {
  const int op = recorder_.Add({"a", "forward", "1x2", {}});
  recorder_.Start();
  for (int step = 0; step < 3; ++step) {
    Call(op, 1);
    Call(op, 1);
    recorder_.Collect();
  }
  EXPECT_EQ(events_, 5) << "two for each call of a step, and that of the beginning";
}

TEST_F(OpRecorderTest, TellsOfEachCallFromWhenOnAndHowLong) {
  const int first = recorder_.Add({"a", "forward", "1x2", {}});
  const int second = recorder_.Add({"b", "forward", "1x2", {}});
  now_ = 100;  // of a clock that knows nothing of the host's
  recorder_.Start();
  std::vector<std::string> logged;
  std::vector<double> begins;
  const auto tell = [&](const RecordedOp& call) {
    logged.push_back(call.op.layer + " " + std::to_string(call.seconds));
    begins.push_back(call.begin);
  };
  Call(first, 0.5);
  Call(second, 2);
  recorder_.Collect(tell);
  now_ += 10;
  Call(first, 1);
  recorder_.Collect(tell);
  EXPECT_THAT(logged, testing::ElementsAre("a 0.500000", "b 2.000000", "a 1.000000"));
  EXPECT_GE(begins.at(0), 0);
  EXPECT_LT(begins[0], 60) << "seconds from Start to the first call, by the clock of the host";
  EXPECT_NEAR(begins.at(1) - begins[0], 0.5, 1e-9);
  EXPECT_NEAR(begins.at(2) - begins[0], 12.5, 1e-9);
}

TEST_F(OpRecorderTest, TheLayerIsThatOfTheParameter) {
  const int with = recorder_.Add({"", "convolution forward", "1x2", {}});
  const int without = recorder_.Add({"", "convolution backward", "1x2", {}});
  const float parameter = 0;
  const float other = 0;
  recorder_.NameLayer(&parameter, "conv1");
  recorder_.Start();
  Call(with, 1, &parameter);
  Call(without, 1, &other);
  recorder_.Collect();
  EXPECT_EQ(recorder_.Ops().at(0).layer, "conv1");
  EXPECT_EQ(recorder_.Ops().at(1).layer, "convolution backward");
}

}  // namespace
}  // namespace trainer
