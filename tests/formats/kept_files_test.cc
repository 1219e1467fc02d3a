// SPDX-License-Identifier: Apache-2.0
//
// What ddlrun 0.1.0 has written (tests/fixtures/0.1.0) is read by the programs of today.

#include <sys/stat.h>

#include "launcher/cli/site_config.h"
#include "launcher/protocol/job_status.h"
#include "tests/formats/kept_directory.h"
#include "tests/support/temporary_directory.h"
#include "trainer/backend/plan_cache.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/control/control_message.h"
#include "trainer/control/stack_dump_request.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/record_cache.h"
#include "trainer/data/files/scan_cache.h"
#include "trainer/data/files/tfrecord.h"

namespace trainer {
namespace {

std::string KeptText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> KeptLines(const std::string& name) {
  std::ifstream file(KeptDirectory() / name);
  EXPECT_TRUE(file) << name;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<RecordFile> TrainingFiles(const fs::path& directory) {
  std::vector<RecordFile> files;
  for (const char* name : {"train-00000-of-00002", "train-00001-of-00002"}) {
    files.emplace_back((directory / name).string(), /*keep_open=*/true);
  }
  return files;
}

TEST(KeptFiles, CheckpointAndExportedWeights) {
  std::vector<std::string> said;
  const auto checkpoint = ReadNewestCheckpoint(
      KeptDirectory() / "run", [&](const std::string& line) { said.push_back(line); });
  EXPECT_THAT(said, IsEmpty());
  ASSERT_TRUE(checkpoint);
  const CheckpointState& state = checkpoint->manifest.state;
  EXPECT_EQ(state.step, 1109);
  EXPECT_EQ(state.epoch, 369);
  EXPECT_EQ(state.epoch_samples, 4);
  EXPECT_EQ(state.global_batch, 2);
  EXPECT_EQ(state.architecture, "resnet_tiny");
  EXPECT_EQ(state.classes, 3);
  EXPECT_EQ(state.precision, "fp32");
  EXPECT_EQ(state.program_version, "0.1.0");
  const SafetensorsFile weights =
      SafetensorsFile::Read((KeptDirectory() / "weights.safetensors").string());
  ASSERT_EQ(weights.tensors().size(), checkpoint->model.tensors().size());
  for (const TensorEntry& tensor : weights.tensors()) {
    const TensorEntry* same = checkpoint->model.Find(tensor.name);
    ASSERT_NE(same, nullptr) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(weights.Data(tensor), checkpoint->model.Data(*same)))
        << tensor.name;
  }
}

TEST(KeptFiles, DataManifestAndIndex) {
  const auto manifest = ReadShardManifest((KeptDirectory() / "data").string());
  ASSERT_TRUE(manifest);
  ASSERT_THAT(*manifest, SizeIs(3));
  for (const ShardSummary& shard : *manifest) {
    const RecordFile file((KeptDirectory() / "data" / shard.name).string(), /*keep_open=*/true);
    const RecordScan scan = file.ScanWithChecksum();
    EXPECT_EQ(SummarizeShard(file, scan), shard);
    const std::string path = (KeptDirectory() / "index" / shard.name).string();
    EXPECT_EQ(ParseIndex(KeptText(path), path, file.bytes()), scan.places);
  }
}

TEST(KeptFiles, ScanOfRecordHeaders) {
  const std::string bytes = KeptText(KeptDirectory() / "scan");
  const auto scans = ParseScans({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()},
                                "node1 /tmp/kept/data train-");
  ASSERT_TRUE(scans);
  const std::vector<RecordFile> files = TrainingFiles(KeptDirectory() / "data");
  ASSERT_EQ(scans->size(), files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const RecordScan scan = files[i].ScanWithChecksum();
    EXPECT_EQ((*scans)[i].scan.places, scan.places);
    EXPECT_EQ((*scans)[i].scan.checksum, scan.checksum);
  }
}

// Its name has what the file system knew of the data files, so the bytes are put under that of now.
TEST(KeptFiles, RecordsKeptOnTheNode) {
  const TemporaryDirectory directory;
  fs::create_directory(directory.path() / "data");
  for (const char* name : {"train-00000-of-00002", "train-00001-of-00002"}) {
    fs::copy_file(KeptDirectory() / "data" / name, directory.path() / "data" / name);
  }
  const std::vector<RecordFile> files = TrainingFiles(directory.path() / "data");
  RecordCache cache(files, "set", "train-",
                    {.dir = (directory.path() / "cache").string(),
                     .max_bytes = 1 << 20,
                     .settled = std::chrono::nanoseconds(0)});
  ASSERT_EQ(cache.use().note, "");
  std::ofstream(cache.use().path, std::ios::binary | std::ios::in)
      << KeptText(KeptDirectory() / "records");
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const RecordPlace& place : files[i].Scan()) {
      std::vector<std::uint8_t> bytes(place.size);
      EXPECT_TRUE(cache.Fetch(i, place, bytes)) << i << " " << place.offset;
      std::vector<std::uint8_t> truth(place.size);
      files[i].Fetch(place, truth);
      EXPECT_EQ(bytes, truth);
    }
  }
}

TEST(KeptFiles, Plans) {
  PlanCache cache;
  EXPECT_TRUE(cache.Read(KeptText(KeptDirectory() / "plans.txt")));
  EXPECT_EQ(cache.Find("b"), "2 of 3");
}

// What a ddlctl of 0.1.0 asks is understood by a ddltraind of today.
TEST(KeptFiles, RequestsOfDdlctl) {
  std::vector<std::string> words;
  for (const std::string& line : KeptLines("control/requests")) {
    const ParsedRequest parsed = ParseRequest(line);
    ASSERT_TRUE(parsed.request) << line << ": " << parsed.problem;
    const auto& command = parsed.request->command;
    words.emplace_back(command ? std::string(NameOf(*command)) : "status");
    if (command == ControlCommand::kSet) {
      EXPECT_EQ(parsed.request->display_every, 5);
    }
  }
  EXPECT_THAT(words, ElementsAre("status", "pause", "resume", "checkpoint", "evaluate", "stop",
                                 "stacks", "set"));
}

// The other way round: what a ddltraind of 0.1.0 answers to a status, to an order that it does not
// know, to another protocol, and to an order for stacks.
TEST(KeptFiles, AnswersOfDdltraind) {
  std::vector<ControlAnswer> answers;
  for (const std::string& line : KeptLines("control/answers")) {
    answers.push_back(ParseAnswer(line));
    EXPECT_EQ(answers.back().status.state, RunState::kPaused);
    EXPECT_EQ(answers.back().status.step, 680);
    EXPECT_EQ(answers.back().status.identity.version, "0.1.0");
  }
  ASSERT_THAT(answers, SizeIs(4));
  EXPECT_EQ(answers[0].rejection, "");
  EXPECT_THAT(answers[1].rejection, HasSubstr("something to do that is not known here"));
  EXPECT_THAT(answers[2].rejection, HasSubstr("protocol 2 where 1 is spoken"));
  EXPECT_EQ(answers[3].stack_dump_command, 1795761295539337U);
}

TEST(KeptFiles, AddressesOfTrainings) {
  const ControlAddress running =
      ParseAddress(KeptText(KeptDirectory() / "control/running_address"));
  EXPECT_EQ(running.host, "node1");
  EXPECT_FALSE(running.last);
  const ControlAddress ended = ParseAddress(KeptText(KeptDirectory() / "control/ended_address"));
  ASSERT_TRUE(ended.last);
  EXPECT_EQ(ended.last->state, RunState::kDone);
  EXPECT_EQ(ended.last->checkpoint_step, 1109);
}

TEST(KeptFiles, OrderForStacksAndItsAnswer) {
  const TemporaryDirectory directory;
  const fs::path file = directory.path() / kStackDumpRequestName;
  fs::copy_file(KeptDirectory() / "control/stacks_request", file);
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  const auto request = ReadStackDumpRequest(file);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->command, 1795761295539337U);
  ASSERT_THAT(request->ranks, SizeIs(1));
  EXPECT_EQ(request->ranks[0].host, "node1");
  const auto stacks = ParseRankStackTraces(KeptText(KeptDirectory() / "control/rank_stacks.txt"));
  ASSERT_TRUE(stacks);
  EXPECT_EQ(stacks->command, request->command);
  EXPECT_THAT(stacks->headline, StartsWith("rank 0 on node1, process "));
}

TEST(KeptFiles, StatusOfDdlrun) {
  const auto status = launcher::ParseJobStatus(KeptText(KeptDirectory() / "control/job_status"));
  ASSERT_TRUE(status);
  EXPECT_EQ(status->host, "node1");
  EXPECT_EQ(status->launcher, "local");
  EXPECT_THAT(status->program, HasSubstr("ddltraind --arch=resnet_tiny"));
  ASSERT_THAT(status->ranks, SizeIs(1));
  EXPECT_EQ(status->ranks[0].state, launcher::JobStatus::RankState::kRunning);
}

// Every key of 0.1.0.
TEST(KeptFiles, SiteFile) {
  const launcher::SiteConfig site =
      launcher::LoadSiteConfig((KeptDirectory() / "site.yaml").string());
  EXPECT_EQ(site.launcher->value, "local");
  EXPECT_EQ(site.pmi->value, "none");
  EXPECT_EQ(site.mpirun->value, "mpirun");
  EXPECT_THAT(site.mpi_arguments->value, SizeIs(3));
  EXPECT_EQ(site.environment.at("NCCL_IB_HCA").value, "=mlx5_0:1,mlx5_3:1");
  EXPECT_EQ(site.bind->value, "none");
  EXPECT_EQ(site.rank_order->value, "cyclic");
  EXPECT_EQ(site.gpu_visibility->value, "all");
  EXPECT_EQ(site.check->value, "off");
  EXPECT_EQ(site.run_directory->value, "/tmp");
  EXPECT_EQ(site.grace_seconds->value, 7);
  EXPECT_EQ(site.start_seconds->value, 300);
}

}  // namespace
}  // namespace trainer
