// SPDX-License-Identifier: Apache-2.0

#include "launcher/pipeline/read_allocation.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <string>
#include <vector>

#include "launcher/base/error.h"
#include "launcher/pipeline/this_machine.h"

namespace launcher {
namespace {

// sbatch -N1 --gres=gpu:2, where the user hides the GPUs.
const Environment kHidden = {{"SLURM_JOB_ID", "7"},
                             {"SLURM_JOB_NODELIST", "n1"},
                             {"SLURMD_NODENAME", "n1"},
                             {"SLURM_GPUS_ON_NODE", "2"},
                             {"CUDA_VISIBLE_DEVICES", ""}};

TEST(ReadAllocation, HiddenGpusContradictNoRunWithoutGpus) {
  Options options;
  EXPECT_THROW(ReadAllocation(options, kHidden, false), LaunchError);
  options.accelerators = 1;
  EXPECT_THROW(ReadAllocation(options, kHidden, false), LaunchError);
  options.accelerators = 0;
  EXPECT_EQ(ReadAllocation(options, kHidden, false).nodes[0].gpus, 2);
  EXPECT_EQ(ReadJob(options, kHidden)->job_id, "7");
  EXPECT_FALSE(ReadJob(options, {}));
}

// What -H says, "" where it is taken.
std::string RefusalOfHosts(const std::string& hosts, const Environment& environment = {}) {
  Options options;
  options.hosts = hosts;
  try {
    ReadAllocation(options, environment, false);
  } catch (const LaunchError& error) {
    return error.what();
  }
  return "";
}

TEST(ReadAllocation, TwoNamesOfThisMachineAreRefused) {
  const std::string own = HostName();
  for (const std::string& hosts :
       {"localhost:1," + own + ":1", "127.0.0.1:1," + own + ":1", own + ",127.0.1.1",
        "n9,localhost.localdomain,n8," + own, std::string("localhost,127.0.0.1")}) {
    EXPECT_THAT(RefusalOfHosts(hosts),
                testing::ContainsRegex("-H .*: .* and .* are both this machine; write one of them"))
        << hosts;
  }
  for (const char* hosts :
       {"gpu1,gpu1.site.example", "gpu1.site.example:2,n[1-3],gpu1:2", "gpu1,GPU1"}) {
    EXPECT_THAT(
        RefusalOfHosts(hosts),
        testing::ContainsRegex("-H .*: .* and .* are one host spelled in two ways; write one"))
        << hosts;
  }
  EXPECT_THAT(RefusalOfHosts("q1,localhost", {{"SLURMD_NODENAME", "q1"}}),
              testing::HasSubstr("q1 and localhost are both this machine"));
  for (const std::string& hosts : std::vector<std::string>{
           "localhost:1,localhost:1", "localhost,n9", "n8,n9", "w.a.example,w.b.example"}) {
    EXPECT_EQ(RefusalOfHosts(hosts), "") << hosts;
  }
}

TEST(ThisMachine, HasNamesAndAddressesOfItsOwn) {
  for (const std::string& host :
       std::vector<std::string>{"localhost", "LOCALHOST", "localhost.localdomain", "127.0.0.1",
                                "127.0.1.1", "127.9.9.9"}) {
    EXPECT_TRUE(IsThisMachine(host, {})) << host;
  }
  EXPECT_TRUE(IsThisMachine(HostName(), {}));
  EXPECT_TRUE(IsThisMachine("q1", {{"SLURMD_NODENAME", "q1"}}));
  for (const std::string& host :
       std::vector<std::string>{"203.0.113.77", "128.0.0.1", "12.7.0.1", "localhosts", "q1"}) {
    EXPECT_FALSE(IsThisMachine(host, {})) << host;
  }
}

// Of any interface that is not the loopback: an address of ours, where there is one.
TEST(ThisMachine, HasTheAddressesOfItsInterfaces) {
  ifaddrs* first = nullptr;
  ASSERT_EQ(getifaddrs(&first), 0);
  int seen = 0;
  for (const ifaddrs* own = first; own != nullptr; own = own->ifa_next) {
    if (own->ifa_addr == nullptr || own->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(own->ifa_addr)->sin_addr, text,
              sizeof(text));
    EXPECT_TRUE(IsThisMachine(text, {})) << text;
    ++seen;
  }
  freeifaddrs(first);
  EXPECT_GE(seen, 1);
}

}  // namespace
}  // namespace launcher
