// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/op_recorder.h"

#include "tests/support/test.h"
#include "tests/trainer/backend/each_backend.h"
#include "tests/trainer/model/fake_batch.h"
#include "trainer/backend/measured_backend.h"
#include "trainer/backend/op_work.h"
#include "trainer/model/network.h"
#include "trainer/telemetry/meters/op_profile.h"

namespace trainer {
namespace {

using ::testing::Gt;
using ::testing::Lt;

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
  EXPECT_THAT(logged, ElementsAre("a 0.500000", "b 2.000000", "a 1.000000"));
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

// The back end that times its ops does what the one inside does, and sees all ops of a step.

struct StepOfNetwork {
  std::vector<float> logits;
  std::vector<std::vector<float>> weights;
  LossSums sums{};
  UpdateSums update{};
};

// Forward, backward and both updates.
StepOfNetwork RunStep(Backend& backend, const NetworkSpec& spec,
                      const std::function<void(const Network&)>& made) {
  const auto stream = backend.MakeStream();
  Network network(backend, spec);
  made(network);
  Initialize(network, {}, *stream);
  FakeBatch batch(backend, spec.batch_size, spec.height, spec.classes);
  const auto sgd = backend.MakeOptimizer(OptimizerKind::kSgd, network.segments());
  const auto lars = backend.MakeOptimizer(OptimizerKind::kLars, network.tensors());
  StepOfNetwork step;
  const UpdateParameters call = {
      .learning_rate = 0.1F, .momentum_factor = 0.9F, .weight_decay = 1e-4F};
  network.Forward(Mode::kTraining, batch.input(), &step.sums, *stream);
  network.Backward(*stream, [](std::size_t) {});
  sgd->Step(&call, network.weights(), network.momentum(), network.gradients(),
            network.compute_weights(), &step.update, *stream);
  lars->Step(&call, network.weights(), network.momentum(), network.gradients(),
             network.compute_weights(), &step.update, *stream);
  stream->Synchronize();
  step.logits.resize(static_cast<std::size_t>(spec.batch_size * spec.classes));
  backend.Export(network.logits(), step.logits.data(), *stream);
  for (const Parameter& parameter : network.parameters()) {
    step.weights.push_back(network.Export(Network::Part::kValue, parameter, *stream));
  }
  return step;
}

// A step of a network by a back end whose ops are timed.
class MeasuredStepTest : public testing::TestWithParam<std::string> {
 protected:
  StepOfNetwork Run(const NetworkSpec& spec) {
    measured_ = MakeMeasuredBackend(*backend_, recorder_);
    recorder_.Start();
    StepOfNetwork step = RunStep(*measured_, spec, [&](const Network& network) {
      for (const Parameter& parameter : network.parameters()) {
        const ParameterBinding binding = network.BindingOf(parameter);
        recorder_.NameLayer(binding.value.data, parameter.name);
        if (binding.gradient) recorder_.NameLayer(binding.gradient.data, parameter.name);
      }
    });
    recorder_.Collect();
    return step;
  }
  std::map<std::string, int> CallsByKind() const {
    std::map<std::string, int> calls;
    for (const ProfiledOp& op : recorder_.Ops()) calls[op.op] += static_cast<int>(op.calls);
    return calls;
  }
  // Of the reference back end: sums are in memory of the host.
  std::unique_ptr<Backend> backend_ = MakeTestedBackend(GetParam(), 1);
  OpRecorder recorder_{[this] { return backend_->MakeEvent(); }};
  std::unique_ptr<Backend> measured_;
};

TEST_P(MeasuredStepTest, ComputesWhatTheBackendInsideComputes) {
  if (!backend_->is_host()) GTEST_SKIP() << "the sums of this test are in memory of the host";
  const NetworkSpec spec = {"resnet_tiny", 4, 32, 32, 10, 0.1F};
  const StepOfNetwork measured = Run(spec);
  const StepOfNetwork plain = RunStep(*backend_, spec, [](const Network&) {});
  EXPECT_EQ(measured.logits, plain.logits);
  EXPECT_EQ(measured.weights, plain.weights);
  EXPECT_EQ(measured.sums.loss, plain.sums.loss);
  EXPECT_EQ(measured.update.sum_of_squares, plain.update.sum_of_squares);
  EXPECT_EQ(measured.update.gradient_squares, plain.update.gradient_squares);
}

// Four bottlenecks, three of them with a downsample; no gradient of the image.
TEST_P(MeasuredStepTest, SeesEveryOpOfAStep) {
  if (!backend_->is_host()) GTEST_SKIP() << "the sums of this test are in memory of the host";
  Run({"resnet_tiny", 4, 32, 32, 10, 0.1F});
  const std::map<std::string, int> expected = {{"input transform", 1},
                                               {"convolution forward", 16},
                                               {"convolution backward data", 15},
                                               {"convolution backward filter", 16},
                                               {"batch norm forward", 16},
                                               {"batch norm backward", 16},
                                               {"max pool forward", 1},
                                               {"max pool backward", 1},
                                               {"average pool forward", 1},
                                               {"average pool backward", 1},
                                               {"linear forward", 1},
                                               {"linear backward", 1},
                                               {"softmax cross-entropy with gradient", 1},
                                               {"SGD with momentum", 1},
                                               {"LARS", 1}};
  EXPECT_EQ(CallsByKind(), expected);
}

// Gradients of two batches: what is read and written once for each sum.
TEST_P(MeasuredStepTest, CountsTheBytesOfSumsOverBatches) {
  if (!backend_->is_host()) GTEST_SKIP() << "the numbers of this test are in memory of the host";
  measured_ = MakeMeasuredBackend(*backend_, recorder_);
  const auto stream = measured_->MakeStream();
  const std::vector<float> values = {1, 2, 3};
  std::vector<float> sums = {10, 20, 30};
  recorder_.Start();
  for (int i = 0; i < 2; ++i) {
    measured_->Add(values.data(), DType::kFloat32, sums.data(), 3, *stream);
  }
  recorder_.Collect();
  EXPECT_EQ(sums, (std::vector<float>{12, 24, 36}));
  ASSERT_EQ(recorder_.Ops().size(), 1U);
  const ProfiledOp op = recorder_.Ops().front();
  EXPECT_EQ(op.op, "gradients of batches added up");
  EXPECT_EQ(op.calls, 2);
  EXPECT_EQ(op.work.bytes, 36);
}

TEST_P(MeasuredStepTest, EachOpBelongsToItsLayer) {
  if (!backend_->is_host()) GTEST_SKIP() << "the sums of this test are in memory of the host";
  Run({"resnet_tiny", 4, 32, 32, 10, 0.1F});
  std::map<std::string, int> ops_of_layer;
  for (const ProfiledOp& op : recorder_.Ops()) {
    EXPECT_GE(op.seconds, 0) << op.op;
    ++ops_of_layer[op.layer];
  }
  EXPECT_EQ(ops_of_layer["conv1.weight"], 2);
  EXPECT_EQ(ops_of_layer["layer1.0.conv2.weight"], 3);
  EXPECT_EQ(ops_of_layer["layer4.0.downsample.0.weight"], 3);
  EXPECT_EQ(ops_of_layer["layer3.0.bn3.weight"], 2);
  EXPECT_EQ(ops_of_layer["fc.weight"], 2);
  for (const char* layer : {"input", "loss"}) EXPECT_EQ(ops_of_layer[layer], 1) << layer;
  EXPECT_EQ(ops_of_layer["update"], 2) << "SGD and LARS";
  for (const char* layer : {"maxpool", "avgpool"}) EXPECT_EQ(ops_of_layer[layer], 2) << layer;
  EXPECT_EQ(ops_of_layer.size(), 5U + 16 + 16 + 1);
}

INSTANTIATE_ON_EACH_BACKEND(MeasuredStepTest);

// The work of a whole step by its ops is that of telemetry/meters/op_profile.h, which was worked
// out otherwise, for images of 224 x 224 pixels.  The layers of one of 32 x 32 have a 49th of the
// pixels each, down to a single one.
TEST(MeasuredStep, Resnet50NeedsTheArithmeticOfItsRoofline) {
  const auto backend = MakeBackend("auto", {.threads = 2});
  if (backend->name() != "cpu") GTEST_SKIP() << "the back end cpu is not there, or not the fastest";
  OpRecorder recorder([&] { return backend->MakeEvent(); });
  const auto measured = MakeMeasuredBackend(*backend, recorder);
  recorder.Start();
  RunStep(*measured, {"resnet50", 1, 32, 32, 1000, 0}, [](const Network&) {});
  recorder.Collect();
  double flop = 0;
  std::int64_t convolutions = 0;
  for (const ProfiledOp& op : recorder.Ops()) {
    const bool is_convolution = op.op.starts_with("convolution");
    if (is_convolution) convolutions += op.calls;
    if (is_convolution || op.op.starts_with("linear")) {
      flop += static_cast<double>(op.calls) * op.work.flop * (is_convolution ? 49 : 1);
    }
  }
  EXPECT_EQ(convolutions, 3 * 53 - 1);
  EXPECT_NEAR(flop / kResNet50Flop, 1, 1e-3);
}

class PeaksOn : public EachBackend {};

TEST_P(PeaksOn, CopiesOnTheDevice) {
  std::vector<std::uint8_t> values(1'000'003);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * 7);
  const auto* src = device_.Upload(values);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{5}, values.size()}) {
    auto* dst = static_cast<std::uint8_t*>(device_.Scratch(values.size() + 1));
    device_.backend().CopyOnDevice(dst, src, bytes, device_.stream());
    const auto copied = device_.Download<std::uint8_t>(dst, values.size() + 1);
    EXPECT_TRUE(std::equal(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(bytes),
                           copied.begin()))
        << bytes;
    EXPECT_EQ(copied[bytes], 0xFF) << "more than " << bytes << " bytes were written";
  }
}

INSTANTIATE_ON_EACH_BACKEND(PeaksOn);

// Of the fastest back end, beside what one convolution and one copy reach here, with room for a
// machine that does other things meanwhile.
TEST(MeasurePeaks, AreWhatTheBackendReaches) {
  Device device(TestedBackends().front());
  Backend& backend = device.backend();
  constexpr std::size_t kBytes = std::size_t{16} << 20;
  const MachinePeaks peaks = MeasurePeaks(backend, {.seconds = 0.1, .copy_bytes = kBytes});
  OpRecorder recorder([&] { return backend.MakeEvent(); });
  const TensorDesc src = device.Images({8, 256, 14, 14});
  const auto convolution = MakeMeasuredBackend(backend, recorder)->MakeConvolution({src, 256});
  const int copy = recorder.Add({"", "copy", "", {0, 2 * double{kBytes}}});
  const Tensor image = device.Make(src);
  const Tensor filter = device.Make(convolution->filter());
  const Tensor dst = device.Make(convolution->dst());
  void* workspace = device.Scratch(convolution->workspace_bytes());
  void* from = device.Scratch(kBytes);
  void* to = device.Scratch(kBytes);
  recorder.Start();
  double flops = 0;
  double bytes_per_second = 0;
  for (int run = 0; run < 5; ++run) {
    convolution->Forward(image, filter, dst, workspace, device.stream());
    recorder.Run(copy, nullptr, device.stream(),
                 [&] { backend.CopyOnDevice(to, from, kBytes, device.stream()); });
    recorder.Collect([&](const RecordedOp& call) {
      flops = std::max(flops, call.op.work.flop / call.seconds);
      if (call.op.op == "copy") {
        bytes_per_second = std::max(bytes_per_second, call.op.work.bytes / call.seconds);
      }
    });
  }
  EXPECT_THAT(peaks.flops / flops, AllOf(Gt(0.01), Lt(100)));
  EXPECT_THAT(peaks.bytes_per_second / bytes_per_second, AllOf(Gt(0.01), Lt(100)));
}

}  // namespace
}  // namespace trainer
