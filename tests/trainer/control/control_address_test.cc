// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/control_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/trainer/control/sample_status.h"
#include "tests/trainer/temporary_folder.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using testing::HasSubstr;

ControlAddress SampleAddress() {
  return {.host = "gpu025.example.org",
          .node = "gpu025",
          .job = "123",
          .pid = 4711,
          .socket = "/tmp/ddltraind.abcdef/4711.socket",
          .last = std::nullopt};
}

TEST(ControlAddressText, IsReadBack) {
  const ControlAddress read = ParseAddress(FormatAddress(SampleAddress()));
  EXPECT_EQ(read.host, "gpu025.example.org");
  EXPECT_EQ(read.node, "gpu025");
  EXPECT_EQ(read.job, "123");
  EXPECT_EQ(read.pid, 4711);
  EXPECT_EQ(read.socket, "/tmp/ddltraind.abcdef/4711.socket");
  EXPECT_FALSE(read.last);
}

TEST(ControlAddressText, HasTheLastWordsOfATraining) {
  ControlAddress address = SampleAddress();
  address.last = SampleStatus();
  address.last->state = RunState::kDone;
  const ControlAddress read = ParseAddress(FormatAddress(address));
  ASSERT_TRUE(read.last);
  EXPECT_EQ(read.last->state, RunState::kDone);
  EXPECT_EQ(read.last->step, 1200);
}

TEST(ControlAddressText, OfOutsideSlurmHasNeitherNodeNorJob) {
  ControlAddress address = SampleAddress();
  address.node = "";
  address.job = "";
  EXPECT_EQ(ParseAddress(FormatAddress(address)).job, "");
}

TEST(ControlAddressText, OfAnyOtherKindIsRefused) {
  for (const char* text : {"", "x", "[]", "{}", R"({"host":"a"})", R"({"host":1,"node":"","job":"",
       "pid":1,"socket":"/s","last":null})",
                           R"({"host":"a","node":"","job":"","pid":1,"socket":"/s",
       "last":{}})"}) {
    EXPECT_THROW(ParseAddress(text), Error) << text;
  }
}

// They become arguments of srun, and a path.
TEST(ControlAddressText, NamesThatAreNoneAreRefused) {
  const auto refused = [](auto change) {
    ControlAddress address = SampleAddress();
    change(address);
    EXPECT_THROW(ParseAddress(FormatAddress(address)), Error) << FormatAddress(address);
  };
  refused([](ControlAddress& address) { address.host = ""; });
  refused([](ControlAddress& address) { address.host = "n1,n2"; });
  refused([](ControlAddress& address) { address.node = "--reboot"; });
  refused([](ControlAddress& address) { address.node = "n[1-9]"; });
  refused([](ControlAddress& address) { address.job = "1 2"; });
  refused([](ControlAddress& address) { address.socket = "socket"; });
  refused([](ControlAddress& address) { address.socket = ""; });
  refused([](ControlAddress& address) { address.socket.push_back('\0'); });
}

TEST(ReadAddress, OfAFolderWithoutATrainingIsNone) {
  const TemporaryFolder folder;
  EXPECT_FALSE(ReadAddress(folder.path()));
  EXPECT_FALSE(ReadAddress(folder.path() / "none"));
}

TEST(ReadAddress, NamesAFileThatCannotBeRead) {
  const TemporaryFolder folder;
  const auto file = folder.path() / kControlAddressName;
  std::ofstream(file) << FormatAddress(SampleAddress());
  EXPECT_EQ(ReadAddress(folder.path())->pid, 4711);
  std::ofstream(file) << "{";
  try {
    ReadAddress(folder.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_DATAERR);
    EXPECT_THAT(error.what(), HasSubstr(file.string() + ": not written by"));
  }
}

}  // namespace
}  // namespace trainer
