// SPDX-License-Identifier: Apache-2.0

#include <sched.h>

#include <numeric>

#include "launcher/base/error.h"
#include "launcher/topology/driver_gpus.h"
#include "launcher/topology/fingerprint.h"
#include "launcher/topology/gpus_of_node.h"
#include "launcher/topology/hwloc_topology.h"
#include "tests/support/directories.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"

namespace launcher {
namespace {

// A sysfs with what matters of an AC922: two sockets, a GPU, a GPU's memory as a node of its own.
std::string FingerprintOf(const std::string& root) {
  Fingerprint fingerprint;
  ReadFingerprint(root.c_str(), &fingerprint);
  return fingerprint.text;
}

class FingerprintTest : public tests::DirectoryTest {
 protected:
  FingerprintTest() {
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

  void Write(const std::string& name, const std::string& text) const {
    DirectoryTest::Write(name, text + "\n");
  }
  std::string Read() const { return FingerprintOf(directory_); }
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
  fs::remove_all(directory_);
  EXPECT_THAT(Read(), HasSubstr("unknown"));
}

TEST(Fingerprint, ReadsThisMachine) { EXPECT_THAT(FingerprintOf(""), HasSubstr("online=")); }

TEST(GpuLists, NumberAndEntryAtAPosition) {
  EXPECT_EQ(GpuNumberAt("0,2-4,7", 0), 0);
  EXPECT_EQ(GpuNumberAt("0,2-4,7", 3), 4);
  EXPECT_EQ(GpuNumberAt("0,2-4,7", 4), 7);
  EXPECT_EQ(GpuNumberAt("0,2-4,7", 5), -1);
  EXPECT_EQ(GpuNumberAt("0,MIG-3,1", 1), -1);
  EXPECT_EQ(GpuNumberAt("3a,1", 0), -1);
  EXPECT_EQ(GpuNumberAt("3-,1", 0), -1);
  EXPECT_STREQ(GpuEntryAt("MIG-a, MIG-b ,MIG-c", 1).text, "MIG-b");
  EXPECT_STREQ(GpuEntryAt("2,3", 3).text, "3");
  EXPECT_STREQ(GpuEntryAt("", 1).text, "");
  EXPECT_STREQ(GpuEntryAt(std::string(200, 'x').c_str(), 0).text, "");
  EXPECT_TRUE(AreGpuSlices("MIG-a"));
  EXPECT_FALSE(AreGpuSlices("GPU-a,MIG-b"));
}

NodeTopology ReadFixture(const std::string& name) {
  return ReadTopologyFile(tests::SourceDirectory() + "/tests/fixtures/hwloc/" + name);
}

std::vector<std::string> BusIds(const NodeTopology& node) {
  std::vector<std::string> ids;
  for (const Gpu& gpu : node.gpus) ids.push_back(gpu.pci_bus_id);
  return ids;
}

std::vector<int> GpuNuma(const NodeTopology& node) {
  std::vector<int> numa;
  for (const Gpu& gpu : node.gpus) numa.push_back(gpu.numa);
  return numa;
}

// A node whose sockets are alike, each with one NUMA node that has CPUs.
struct KnownNode {
  std::string file;
  std::vector<int> numa_os_indices;  // those with CPUs, one for each socket
  long long memory_gib = 0;          // of each
  int cores = 0;                     // of each socket
  int threads = 0;                   // of each core
  std::vector<std::string> gpus;
  std::vector<int> gpu_numa;
  std::string model;
};

KnownNode Ac922(const std::string& file, int cores) {
  return {file,
          {0, 8},
          128,
          cores,
          4,
          {"0004:04:00.0", "0004:05:00.0", "0035:03:00.0", "0035:04:00.0"},
          {0, 0, 1, 1},
          "Tesla V100-SXM2-16GB"};
}

void ExpectKnown(const KnownNode& known) {
  SCOPED_TRACE(known.file);
  const NodeTopology node = ReadFixture(known.file);
  ASSERT_EQ(node.numa_nodes.size(), known.numa_os_indices.size());
  for (std::size_t i = 0; i < node.numa_nodes.size(); ++i) {
    EXPECT_EQ(node.numa_nodes[i].os_index, known.numa_os_indices[i]);
    EXPECT_EQ(node.numa_nodes[i].memory_bytes, known.memory_gib << 30);
    ASSERT_THAT(node.numa_nodes[i].cores, SizeIs(known.cores));
  }
  ASSERT_EQ(node.cores.size(), node.numa_nodes.size() * known.cores);
  for (int i = 0; i < static_cast<int>(node.cores.size()); ++i) {
    const Core& core = node.cores[i];
    EXPECT_EQ(core.socket, i / known.cores);
    EXPECT_EQ(core.core_in_socket, i % known.cores);
    EXPECT_EQ(core.numa, i / known.cores);
    std::vector<int> cpus(known.threads);
    std::iota(cpus.begin(), cpus.end(), known.threads * i);
    EXPECT_EQ(core.cpus, cpus);
    EXPECT_EQ(node.numa_nodes[core.numa].cores[i % known.cores], i);
  }
  EXPECT_EQ(BusIds(node), known.gpus);
  EXPECT_EQ(GpuNuma(node), known.gpu_numa);
  for (const Gpu& gpu : node.gpus) EXPECT_EQ(gpu.model, known.model);
}

// The memory of GPUs, which is NUMA nodes of its own on POWER9 and Grace, is left out.
TEST(HwlocTopology, ReadsKnownNodes) {
  ExpectKnown(Ac922("ac922_16c_4v100.xml", 16));
  ExpectKnown(Ac922("ac922_20c_4v100.xml", 20));
  ExpectKnown(Ac922("ac922_22c_4v100.xml", 22));
  ExpectKnown(Ac922("ac922_16c_4v100_gpu_memory.xml", 16));
  ExpectKnown({"gb200_72c_4gpu.xml",
               {0, 1},
               480,
               72,
               1,
               {"0008:01:00.0", "0009:01:00.0", "0018:01:00.0", "0019:01:00.0"},
               {0, 0, 1, 1},
               "NVIDIA GB200"});
  ExpectKnown({"gh200_72c_1gpu.xml", {0}, 480, 72, 1, {"0009:01:00.0"}, {0}, "NVIDIA GH200 480GB"});
}

TEST(HwlocTopology, ReadsADgx1InPciOrder) {
  const NodeTopology node = ReadFixture("dgx1v.xml");
  ASSERT_THAT(node.numa_nodes, SizeIs(2));
  EXPECT_EQ(node.numa_nodes[1].os_index, 1);
  EXPECT_THAT(node.cores, SizeIs(40));
  EXPECT_THAT(BusIds(node),
              ElementsAre("0000:06:00.0", "0000:07:00.0", "0000:0a:00.0", "0000:0b:00.0",
                          "0000:85:00.0", "0000:86:00.0", "0000:89:00.0", "0000:8a:00.0"));
  EXPECT_THAT(GpuNuma(node), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
}

// Two sockets of one core.  Socket 1 carries GPU memory as NUMA node 255, as POWER9 firmware shows
// it; the GPUs are known by their CUDA names only, and cuda10 comes after cuda2.
constexpr const char* kSmallMachine = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
<object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3" nodeset="0x80000000,,,,,,,0x00000101" complete_nodeset="0x80000000,,,,,,,0x00000101" allowed_nodeset="0x80000000,,,,,,,0x00000101" gp_index="1">
<object type="Package" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="2">
<object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="3" local_memory="1000"/>
<object type="Core" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="4">
<object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="5"/>
</object>
<object type="OSDev" gp_index="6" name="cuda10" subtype="CUDA" osdev_type="5"><info name="GPUModel" value="B"/></object>
</object>
<object type="Package" os_index="8" cpuset="0x2" complete_cpuset="0x2" nodeset="0x80000000,,,,,,,0x00000100" complete_nodeset="0x80000000,,,,,,,0x00000100" gp_index="7">
<object type="NUMANode" os_index="8" cpuset="0x2" complete_cpuset="0x2" nodeset="0x100" complete_nodeset="0x100" gp_index="8" local_memory="2000"/>
<object type="NUMANode" os_index="255" cpuset="0x2" complete_cpuset="0x2" nodeset="0x80000000,,,,,,,0x0" complete_nodeset="0x80000000,,,,,,,0x0" gp_index="9" subtype="GPUMemory" local_memory="16"/>
<object type="Core" os_index="4" cpuset="0x2" complete_cpuset="0x2" nodeset="0x80000000,,,,,,,0x00000100" complete_nodeset="0x80000000,,,,,,,0x00000100" gp_index="10">
<object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x80000000,,,,,,,0x00000100" complete_nodeset="0x80000000,,,,,,,0x00000100" gp_index="11"/>
</object>
<object type="OSDev" gp_index="12" name="cuda2" subtype="CUDA" osdev_type="5"><info name="GPUModel" value="A"/></object>
<object type="OSDev" gp_index="13" name="nvml0" subtype="NVML" osdev_type="1"/>
</object>
</object>
</topology>
)";

TEST(HwlocTopology, LeavesOutNumaNodesOfGpuMemory) {
  const NodeTopology node = ReadTopologyXml(kSmallMachine, "small machine");
  ASSERT_THAT(node.numa_nodes, SizeIs(2));
  EXPECT_EQ(node.numa_nodes[0].os_index, 0);
  EXPECT_EQ(node.numa_nodes[1].os_index, 8);
  EXPECT_EQ(node.numa_nodes[1].memory_bytes, 2000);
  EXPECT_EQ(node.cores[1].numa, 1);
}

TEST(HwlocTopology, TakesCudaDevicesWhereThereAreNoPciDevices) {
  const NodeTopology node = ReadTopologyXml(kSmallMachine, "small machine");
  ASSERT_THAT(node.gpus, SizeIs(2));
  EXPECT_EQ(node.gpus[0].model, "A");
  EXPECT_EQ(node.gpus[1].model, "B");
  EXPECT_THAT(BusIds(node), ElementsAre("", ""));
  EXPECT_THAT(GpuNuma(node), ElementsAre(1, 0));
}

TEST(HwlocTopology, CountsOtherDevicesAsNoGpu) {
  std::string xml = kSmallMachine;
  const std::string device = "<object type=\"OSDev\" gp_index=\"13\"";
  xml.replace(xml.find(device), device.size(),
              "<object type=\"PCIDev\" gp_index=\"14\" pci_busid=\"0000:01:00.0\" "
              "pci_type=\"0300 [1a03:2000] [1a03:2000] 41\" pci_link_speed=\"0\"/>" +
                  device);
  EXPECT_THAT(BusIds(ReadTopologyXml(xml, "small machine")), ElementsAre("", ""));
}

std::string Rejection(const std::function<void()>& read) {
  return tests::Rejection<LaunchError>(EX_DATAERR, [&] { read(); });
}

TEST(HwlocTopology, RejectsWhatIsNoTopology) {
  EXPECT_THAT(Rejection([] { ReadTopologyFile("/nowhere/node.xml"); }),
              HasSubstr("/nowhere/node.xml: hwloc cannot read the topology"));
  EXPECT_THAT(Rejection([] { ReadTopologyXml("<topology/>", "bad.xml"); }), HasSubstr("bad.xml"));
  EXPECT_THAT(Rejection([] { ReadTopologyXml("", "empty.xml"); }), HasSubstr("empty.xml"));
}

TEST(HwlocTopology, SeesThisMachine) {
  const NodeTopology node = ReadLiveTopology();
  ASSERT_FALSE(node.numa_nodes.empty());
  std::size_t cpus = 0;
  for (const Core& core : node.cores) cpus += core.cpus.size();
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  EXPECT_EQ(cpus, static_cast<std::size_t>(CPU_COUNT(&allowed)));
}

TEST(HwlocTopology, KeepsToTheCpusOfThisProcess) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &before)) --last;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(last, &only);
  ASSERT_EQ(sched_setaffinity(0, sizeof only, &only), 0);
  const NodeTopology node = ReadLiveTopology();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  ASSERT_THAT(node.cores, SizeIs(1));
  EXPECT_THAT(node.cores[0].cpus, ElementsAre(last));
  ASSERT_THAT(node.numa_nodes, SizeIs(1));
  EXPECT_THAT(node.numa_nodes[0].cores, ElementsAre(0));
}

// The NUMA nodes of the GPUs 3b, 86 and af, which are 0, 1 and 2, in the order of device files.
std::vector<int> NumaByDeviceFile(const std::vector<int>& minors) {
  const std::array<const char*, 3> kIds = {"0000:3b:00.0", "0000:86:00.0", "0000:af:00.0"};
  NodeTopology node;
  std::vector<DriverGpu> known;
  for (std::size_t i = 0; i < minors.size(); ++i) {
    node.gpus.push_back({kIds.at(i), static_cast<int>(i), ""});
    known.push_back({kIds.at(i), "", "", minors[i]});
  }
  OrderByDeviceFile(known, &node);
  std::vector<int> numa;
  for (const Gpu& gpu : node.gpus) numa.push_back(gpu.numa);
  return numa;
}

TEST(OrderByDeviceFile, NumbersGpusAsSlurmDoes) {
  EXPECT_THAT(NumaByDeviceFile({0, 1, 2}), ElementsAre(0, 1, 2));
  EXPECT_THAT(NumaByDeviceFile({1, 0, 2}), ElementsAre(1, 0, 2));
  EXPECT_THAT(NumaByDeviceFile({2, 0, 1}), ElementsAre(1, 2, 0));
  EXPECT_THAT(NumaByDeviceFile({3, 0}), ElementsAre(1, -1, -1, 0)) << "two have been lost";
  EXPECT_THAT(NumaByDeviceFile({1, -1}), ElementsAre(0, 1)) << "the driver does not say";
  EXPECT_THAT(NumaByDeviceFile({1'000'000, 0}), ElementsAre(0, 1));
  EXPECT_THAT(NumaByDeviceFile({}), ElementsAre());
  NodeTopology node;
  node.gpus = {{"0000:3b:00.0", 0, ""}, {"0000:86:00.0", 1, ""}};
  OrderByDeviceFile({{"0000:86:00.0", "", "", 0}}, &node);
  EXPECT_EQ(node.gpus.front().numa, 0) << "the driver does not know one of them";
}

}  // namespace
}  // namespace launcher
