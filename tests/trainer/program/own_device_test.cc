// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/own_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/train/deferred_backend.h"
#include "trainer/backend/registry.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr char kNoLibrary[] = "libno-such-nvml.so.1";

TEST(OwnDevice, NamesTheCpuWhereItIsTheDevice) {
  const auto backend = MakeBackend("reference", {});
  EXPECT_THAT(OwnDevice(*backend).Describe(), testing::StartsWith("CPU"));
}

// A GPU whose driver answers the first question alone.
class Gpu : public DeferredBackend {
 public:
  std::string device_id() const override {
    if (++asked_ > 1) throw Error(EX_OSERR, "asking for the GPU's PCI bus id");
    return "0000:1B:00.0";
  }

 private:
  mutable int asked_ = 0;
};

TEST(OwnDevice, AsksForTheNameOfAGpuAtOnceAndNoMore) {
  const Gpu gpu;
  OwnDevice device(gpu, kNoLibrary);
  EXPECT_EQ(device.Describe(), "GPU at 0000:1B:00.0");
  EXPECT_EQ(device.Describe(), "GPU at 0000:1B:00.0");
}

// Not on the thread of the watch, where it would end the process.
TEST(DeviceWatch, ThrowsAtOnceWhereTheGpuHasNoName) {
  const Gpu gpu;
  gpu.device_id();
  EXPECT_THROW(DeviceWatch(gpu, kNoLibrary), Error);
}

}  // namespace
}  // namespace trainer
