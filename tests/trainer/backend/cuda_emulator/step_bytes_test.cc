// SPDX-License-Identifier: Apache-2.0
//
// The bytes that a step of ResNet-50 moves by the cuda back end with every kernel of its own, in 16
// bits: what its time is made of (doc/performance/gpu-step.md), held so that no change adds to it
// unseen.  Counted where kernels access memory, not by formulas.

#include <map>

#include "tests/support/test.h"
#include "tests/trainer/backend/cuda_emulator/runtime_api.h"
#include "tests/trainer/backend/cuda_emulator/traffic.h"
#include "tests/trainer/backend/device.h"
#include "trainer/backend/measured_backend.h"
#include "trainer/backend/op_recorder.h"
#include "trainer/model/network.h"

namespace trainer {
namespace {

// A clock that goes on by one with each byte, so that a recorder's seconds are bytes.
class Odometer final : public Event {
 public:
  void Record(Stream& /*stream*/) override {
    const cuda_emulator::Traffic traffic = cuda_emulator::TrafficSoFar();
    bytes_ = static_cast<double>(traffic.read + traffic.written);
  }
  void MakeWait(Stream& /*stream*/) override {}
  void Synchronize() override {}
  double SecondsSince(const Event& earlier) const override {
    return bytes_ - static_cast<const Odometer&>(earlier).bytes_;
  }

 private:
  double bytes_ = 0;
};

using BytesByOp = std::map<std::string, double>;

constexpr std::int64_t kSize = 64;  // of the images: ResNet-50's layers are from 32 x 32 to 2 x 2

// A forward and a backward pass.  `apart`: no block is told of the one below it.
BytesByOp RunStep(std::int64_t batch_size, bool apart) {
  // So few that each has work at this size, as those of a GPU have at 224 x 224.
  cuda_emulator::PretendMultiprocessors(2);
  Device device("cuda_fp16");
  OpRecorder recorder([] { return std::make_unique<Odometer>(); });
  const auto backend = MakeMeasuredBackend(device.backend(), recorder);
  NetworkDefinition definition = DefineNetwork(
      *backend, {.arch = "resnet50", .batch_size = batch_size, .height = kSize, .width = kSize});
  for (const NetworkDefinition::Body& body : definition.bodies) {
    if (apart) body.block->set_below(nullptr);
  }
  Network network(*backend, std::move(definition));
  const auto* bytes =
      static_cast<const std::uint8_t*>(device.Scratch(batch_size * 3 * kSize * kSize));
  InputBatch batch;
  batch.pixels = bytes;
  batch.mirror = bytes;
  batch.labels = static_cast<const std::int32_t*>(device.Scratch(4 * batch_size));
  batch.loss = static_cast<const LossParameters*>(device.Scratch(sizeof(LossParameters)));
  auto* sums = static_cast<LossSums*>(device.Scratch(sizeof(LossSums)));
  cuda_emulator::CountTraffic(true);
  recorder.Start();
  network.Forward(Mode::kTraining, batch, sums, device.stream());
  network.Backward(device.stream(), [](std::size_t /*complete_from*/) {});
  recorder.Collect();
  cuda_emulator::CountTraffic(false);
  BytesByOp bytes_by_op;
  for (const ProfiledOp& op : recorder.Ops()) bytes_by_op[op.op] += op.seconds;
  return bytes_by_op;
}

// Of 256 images of 224 x 224: bytes are a + b n for a batch of n, b in proportion to the pixels.
BytesByOp GigabytesAt256(bool apart) {
  constexpr int kFew = 2;
  constexpr int kMore = 6;
  constexpr double kImages = 256 * (224.0 / kSize) * (224.0 / kSize);
  const BytesByOp few = RunStep(kFew, apart);
  const BytesByOp more = RunStep(kMore, apart);
  BytesByOp gigabytes;
  for (const auto& [op, bytes] : more) {
    const double of_image = (bytes - few.at(op)) / (kMore - kFew);
    gigabytes[op] = (bytes + (kImages - kMore) * of_image) / 1e9;
  }
  return gigabytes;
}

double Sum(const BytesByOp& by_op) {
  double sum = 0;
  for (const auto& [op, value] : by_op) sum += value;
  return sum;
}

class StepBytes : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_emulator::CanCountTraffic()) GTEST_SKIP() << "bytes are counted on x86-64 alone";
  }
};

// The update, which reads and writes 0.5 GB at any batch size, is left out.
TEST_F(StepBytes, OfResNet50) {
  const auto together = GigabytesAt256(/*apart=*/false);
  std::string table;
  for (const auto& [op, gigabytes] : together) {
    table += "\n  " + std::to_string(gigabytes) + " GB  " + op;
  }
  EXPECT_NEAR(Sum(together), 58.60, 0.05) << table;
  EXPECT_NEAR(Sum(GigabytesAt256(/*apart=*/true)), 69.69, 0.05);
}

}  // namespace
}  // namespace trainer
