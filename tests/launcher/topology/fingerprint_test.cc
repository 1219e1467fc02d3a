// SPDX-License-Identifier: Apache-2.0

#include "launcher/topology/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace launcher {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// A sysfs with what matters of an AC922: two sockets, a GPU, a GPU's memory as a node of its own.
std::string FingerprintOf(const std::string& root) {
  Fingerprint fingerprint;
  ReadFingerprint(root.c_str(), &fingerprint);
  return fingerprint.text;
}

class FingerprintTest : public testing::Test {
 protected:
  FingerprintTest() : root_(fs::path(testing::TempDir()) / "fingerprint") {
    fs::remove_all(root_);
    Write("sys/devices/system/cpu/online", "0-127");
    Write("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-3");
    Write("sys/devices/system/node/node0/cpulist", "0-63");
    Write("sys/devices/system/node/node8/cpulist", "64-127");
    Write("sys/devices/system/node/node255/cpulist", "");
    Write("sys/devices/system/node/possible", "0-255");
    Write("sys/bus/pci/devices/0004:04:00.0/vendor", "0x10de");
    Write("sys/bus/pci/devices/0004:04:00.0/class", "0x030200");
    Write("sys/bus/pci/devices/0004:04:00.0/numa_node", "0");
    Write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x15b3");
  }
  ~FingerprintTest() override { fs::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text << "\n";
  }
  std::string Read() const { return FingerprintOf(root_.string()); }

  fs::path root_;
};

TEST_F(FingerprintTest, SaysWhatAPlanDependsOn) {
  EXPECT_THAT(Read(), HasSubstr(" online=0-127 threads=0-3 node0=0-63 node8=64-127 "
                                "0004:04:00.0@0"));
  EXPECT_THAT(Read(), Not(HasSubstr("node255")));
  EXPECT_EQ(Read(), Read());
}

TEST_F(FingerprintTest, DiffersWhereANodeDoes) {
  const std::string before = Read();
  Write("sys/bus/pci/devices/0035:03:00.0/vendor", "0x10de");
  Write("sys/bus/pci/devices/0035:03:00.0/class", "0x030200");
  Write("sys/bus/pci/devices/0035:03:00.0/numa_node", "8");
  const std::string with_a_gpu = Read();
  EXPECT_NE(with_a_gpu, before);
  Write("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1");
  EXPECT_NE(Read(), with_a_gpu);
}

TEST_F(FingerprintTest, EqualsNothingWhereSysfsDoesNotTell) {
  fs::remove_all(root_);
  EXPECT_THAT(Read(), HasSubstr("unknown"));
}

TEST(Fingerprint, ReadsThisMachine) { EXPECT_THAT(FingerprintOf(""), HasSubstr("online=")); }

}  // namespace
}  // namespace launcher
