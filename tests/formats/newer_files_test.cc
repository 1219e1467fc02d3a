// SPDX-License-Identifier: Apache-2.0
//
// What a later ddlrun may write, in formats that do not exist yet, is neither taken for damaged nor
// read in part: each is refused with its name, its number, the number that is known, and what to do
// (doc/formats.md).

#include <cstdio>
#include <span>

#include "ddlctl/job.h"
#include "ddlctl/status_text.h"
#include "launcher/base/error.h"
#include "launcher/cli/site_config.h"
#include "launcher/protocol/job_status.h"
#include "tests/formats/kept_directory.h"
#include "tests/support/temporary_directory.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/control/control_message.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/scan_cache.h"

namespace trainer {
namespace {

constexpr char kAdvice[] = "use the version of ddlrun that has written it, or a newer one";

struct Rejected {
  int exit_code = 0;
  std::string text;
};

Rejected RejectionOfNewer(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.exit_code(), error.what()};
  }
  return {0, "nothing was refused"};
}

// "of format 2, and this program reads format 1".
std::string FormatsText(int known) {
  return "of format " + std::to_string(known + 1) + ", and this program reads format " +
         std::to_string(known);
}

// Of a later ddltraind, which has other members beside those that stay.
std::string NewerCheckpointManifest() {
  const std::string body = R"({"format":)" + std::to_string(kCheckpointFormat + 1) +
                           R"(,"parts":["a"],"program_version":"9.8.7"})";
  char checksum[9];
  std::snprintf(checksum, sizeof checksum, "%08x", Crc32c(std::as_bytes(std::span(body))));
  return std::string(R"({"crc32c":")") + checksum + R"(","manifest":)" + body + "}\n";
}

// A run of 0.1.0 that a later version went on with.
class NewerCheckpointTest : public testing::Test {
 protected:
  NewerCheckpointTest() {
    fs::copy(KeptDirectory() / "run", run_, fs::copy_options::recursive);
    fs::create_directory(newer_);
    std::ofstream(newer_ / "manifest.json") << NewerCheckpointManifest();
  }

  const TemporaryDirectory directory_;
  const fs::path run_ = directory_.path() / "run";
  const fs::path newer_ = run_ / "checkpoints/step-0000002000";
};

TEST_F(NewerCheckpointTest, IsRejectedByNameAndVersion) {
  const Rejected rejected = RejectionOfNewer([&] { ReadCheckpoint(newer_); });
  EXPECT_EQ(rejected.exit_code, EX_CONFIG);
  EXPECT_THAT(rejected.text, AllOf(StartsWith((newer_ / "manifest.json").string() + ": "),
                                   HasSubstr("a checkpoint of ddltraind 9.8.7, "),
                                   HasSubstr(FormatsText(kCheckpointFormat)), HasSubstr(kAdvice)));
}

TEST_F(NewerCheckpointTest, IsNotPassedOverForAnOlderOne) {
  const auto read = [&] { ReadNewestCheckpoint(run_, [](const std::string&) {}); };
  const Rejected rejected = RejectionOfNewer(read);
  EXPECT_EQ(rejected.exit_code, EX_CONFIG);
  EXPECT_THAT(rejected.text, AllOf(HasSubstr(FormatsText(kCheckpointFormat)),
                                   HasSubstr("move " + newer_.string() + " away")));
  fs::remove_all(newer_);
  EXPECT_EQ(RejectionOfNewer(read).exit_code, 0);
}

TEST_F(NewerCheckpointTest, MayBeTheBestAndIsNotChanged) {
  EXPECT_THAT(ListEvaluated(run_).unreadable, ElementsAre(newer_));
  EXPECT_EQ(RejectionOfNewer([&] { NoteTop1(newer_, 0.5); }).exit_code, EX_CONFIG);
  EXPECT_EQ(tests::TextOf(newer_ / "manifest.json"), NewerCheckpointManifest());
}

TEST_F(NewerCheckpointTest, WithABitTurnedItIsDamaged) {
  std::string text = NewerCheckpointManifest();
  text.replace(text.find("parts"), 1, "q");
  EXPECT_EQ(RejectionOfNewer([&] { ParseManifest(text, "m"); }).exit_code, EX_DATAERR);
}

TEST(NewerFiles, DataManifest) {
  const std::string text =
      "ddldata manifest " + std::to_string(kShardManifestFormat + 1) + "\ntrain-0 1 2 3 4\n";
  const Rejected rejected =
      RejectionOfNewer([&] { ParseShardManifest(text, "data/ddldata.manifest"); });
  EXPECT_EQ(rejected.exit_code, EX_DATAERR);
  EXPECT_THAT(rejected.text,
              AllOf(StartsWith("data/ddldata.manifest:1: a data manifest "),
                    HasSubstr(FormatsText(kShardManifestFormat)), HasSubstr(kAdvice),
                    HasSubstr("make one that this version reads: ddldata manifest data")));
}

// A cache: what is not understood is found out anew.
TEST(NewerFiles, ScanOfRecordHeadersIsNone) {
  std::string bytes = FormatScans("set", {});
  ASSERT_EQ(bytes.substr(0, 17), "ddltraind scan 1\n");
  const auto parse = [&] {
    return ParseScans({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, "set");
  };
  EXPECT_TRUE(parse());
  bytes[15] = '2';
  EXPECT_FALSE(parse());
}

TEST(NewerFiles, StatusOfDdlrun) {
  const TemporaryDirectory base;
  const fs::path directory = base.path() / "ddlrun.aaaaaa";
  fs::create_directory(directory);
  fs::permissions(directory, fs::perms::owner_all);
  std::ofstream(directory / launcher::kStatusFileName)
      << launcher::kStatusBeginning << launcher::kStatusFormat + 1 << "\njob 12 in other words\n";
  const Rejected rejected = RejectionOfNewer([&] { ddlctl::ReadJobStatus(directory); });
  EXPECT_EQ(rejected.exit_code, EX_DATAERR);
  EXPECT_THAT(rejected.text,
              AllOf(StartsWith((directory / "status").string() + ": a status "),
                    HasSubstr(FormatsText(launcher::kStatusFormat)), HasSubstr(kAdvice)));
  // Whoever looks for a job by its number hears of it.
  std::string unread;
  EXPECT_FALSE(ddlctl::FindJobStatus("12", {base.path()}, &unread));
  EXPECT_EQ(unread, rejected.text);
}

TEST(NewerFiles, AddressOfATraining) {
  const TemporaryDirectory directory;
  const fs::path file = directory.path() / kControlAddressName;
  std::ofstream(file) << R"({"protocol":)" << kControlProtocol + 1 << R"(,"where":"elsewhere"})";
  const Rejected rejected = RejectionOfNewer([&] { ReadAddress(directory.path()); });
  EXPECT_EQ(rejected.exit_code, EX_DATAERR);
  EXPECT_THAT(rejected.text, AllOf(StartsWith(file.string() + ": the address of a training "),
                                   HasSubstr(FormatsText(kControlProtocol)), HasSubstr(kAdvice)));
}

TEST(NewerFiles, RequestAndAnswer) {
  const std::string protocol = R"({"protocol":)" + std::to_string(kControlProtocol + 1);
  const std::string expected = "protocol " + std::to_string(kControlProtocol + 1) + " where " +
                               std::to_string(kControlProtocol) +
                               " is spoken: use the ddlctl that came with this ddltraind";
  const ParsedRequest parsed = ParseRequest(protocol + R"(,"do":"status"})");
  EXPECT_FALSE(parsed.request);
  EXPECT_EQ(parsed.problem, expected);
  const Rejected rejected = RejectionOfNewer([&] { ParseAnswer(protocol + R"(,"state":"new"})"); });
  EXPECT_EQ(rejected.exit_code, EX_DATAERR);
  EXPECT_EQ(rejected.text, "the answer is " + expected);
}

// An order that came with a later ddlctl of the same protocol.
TEST(NewerFiles, OrderThatIsNotKnown) {
  const ParsedRequest parsed = ParseRequest(R"({"protocol":1,"do":"dance"})");
  EXPECT_FALSE(parsed.request);
  EXPECT_EQ(parsed.problem, "\"dance\", which is not known here");
  ControlAnswer answer{.rejection = "no \x1b[2J"};
  answer.status.identity.version = "9.8.7";
  EXPECT_THAT(ddlctl::RejectionText(answer),
              StartsWith("no ?[2J (it is ddltraind 9.8.7, this is ddlctl "));
}

TEST(NewerFiles, SiteFile) {
  try {
    launcher::ParseSiteConfig("bind: none\nquantum: 7\n", "site.yaml");
    FAIL();
  } catch (const launcher::LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_CONFIG);
    EXPECT_THAT(error.what(),
                AllOf(StartsWith("site.yaml:2: unknown key 'quantum'; take it out, or use the "
                                 "version of ddlrun that has it; this one has bind, check, "),
                      HasSubstr(", start_seconds")));
  }
}

}  // namespace
}  // namespace trainer
