// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/gpu_errors.h"

#include "tests/support/test.h"

namespace launcher {
namespace {

TEST(ParseGpuErrors, ReadsTheRecordsOfTheDriver) {
  struct Case {
    const char* record;
    std::vector<std::string> errors;  // "SECONDS XID GPU PID"
  };
  const Case cases[] = {
      {"6,339,5140900,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, name=python3, Ch 00000008, intr",
       {"5.1 31 0000:3b:00 1234"}},
      {"4,340,7000000,-,caller=T1;NVRM: Xid (PCI:0000:5e:00): 79, pid='<unknown>', name=<unknown>",
       {"7.0 79 0000:5e:00 0"}},
      {"4,341,7500000,-;NVRM: Xid (PCI:0000:5e:00): 48, An uncorrectable error",
       {"7.5 48 0000:5e:00 0"}},
      {"4,341,7500000,-;NVRM: GPU 0000:5e:00.0: rm_init_adapter failed", {}},
      {"4,341,-;NVRM: Xid (PCI:0000:5e:00): 48", {}},
      {"4,341,7,-;NVRM: Xid (PCI:0000:5e:00)", {}},
      {"4,341,7,-;NVRM: Xid (PCI:0000:5e:00): x", {}},
      {"NVRM: Xid (PCI:0000:5e:00): 48, 4,341,7;", {}},
      {"6,1,2,-;usb 1-1: new device\n SUBSYSTEM=usb\n4,2,3000000,-;NVRM: Xid (PCI:1): 13, pid=7",
       {"3.0 13 1 7"}},
      {"", {}},
  };
  for (const Case& test : cases) {
    std::vector<std::string> errors;
    for (const GpuError& error : ParseGpuErrors(test.record)) {
      errors.push_back(std::to_string(error.seconds).substr(0, 3) + " " +
                       std::to_string(error.xid) + " " + error.gpu + " " +
                       std::to_string(error.pid));
    }
    EXPECT_EQ(errors, test.errors) << test.record;
  }
}

TEST(ReadKernelLog, IsEmptyWhereItCannotBeRead) {
  EXPECT_EQ(ReadKernelLog("/no such file"), "");
  EXPECT_EQ(ReadKernelLog("/"), "");
}

}  // namespace
}  // namespace launcher
