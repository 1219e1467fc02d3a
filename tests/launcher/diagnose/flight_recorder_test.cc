// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/flight_recorder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "support/descriptor.h"
#include "tests/support/temporary_directory.h"

namespace launcher {
namespace {

using namespace std::chrono_literals;

// Values as PyTorch writes them: numbers of 8 bytes.
std::string Text(const std::string& text) {
  return "X" + std::string({static_cast<char>(text.size()), 0, 0, 0}) + text;
}
std::string Number(long long number) {
  std::string bytes = "\x8a\x08";
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(number >> 8 * i);
  return bytes;
}
std::string List(const std::vector<std::string>& elements) {
  std::string text = "](";
  for (const std::string& element : elements) text += element;
  return text + "e";
}
std::string Dict(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string text = "}(";
  for (const auto& [key, value] : entries) text += Text(key) + value;
  return text + "u";
}
std::string Dump(const std::vector<std::string>& entries) {
  return "\x80\x02" +
         Dict({{"version", Text("2.10")},
               {"pg_config", Dict({{"0", Dict({{"ranks", Text("[0, 1]")}})}})},
               {"entries", List(entries)}}) +
         ".";
}

std::string Frame(const std::string& name, const std::string& file, int line) {
  return Dict({{"name", Text(name)}, {"filename", Text(file)}, {"line", Number(line)}});
}

// As the tutorial shows one.
std::string Entry(long long number, const std::string& name, const std::string& state,
                  const std::string& group = "0", bool is_p2p = false) {
  return Dict(
      {{"frames", List({Frame("all_reduce", "/usr/lib/python3.11/site-packages/torch/d.py", 2),
                        Frame("sync", "/home/me/job/train.py", 50)})},
       {"record_id", Number(7)},
       {"pg_id", Number(0)},
       {"process_group", Text(group) + Text(group == "0" ? "default_pg" : "tp") + "\x86"},
       {"collective_seq_id", Number(number)},
       {"p2p_seq_id", Number(0)},
       {"profiling_name", Text("nccl:" + name)},
       {"input_sizes", List({List({Number(3), Number(4)}), List({Number(2)})})},
       {"input_dtypes", List({Text("Float"), Text("Half")})},
       {"output_sizes", List({})},
       {"state", Text(state)},
       {"time_discovered_started_ns", "N"},
       {"is_p2p", is_p2p ? "\x88" : "\x89"}});
}

TEST(ParseFlightRecord, TakesTheLastCollectivesOfEachProcessGroup) {
  std::vector<std::string> entries;
  for (int i = 1; i <= 7; ++i) entries.push_back(Entry(i, "all_reduce", "completed"));
  entries.push_back(Entry(3, "_allgather_base", "started", "1"));
  entries.push_back(Entry(8, "coalesced", "scheduled"));
  entries.push_back(Entry(8, "all_reduce", "scheduled"));
  entries.push_back(Entry(8, "send", "scheduled", "2", /*is_p2p=*/true));
  const auto groups = ParseFlightRecord(Dump(entries));
  ASSERT_TRUE(groups);
  ASSERT_EQ(groups->size(), 2U);
  const RecordedGroup& first = groups->at(0);
  EXPECT_EQ(first.name, "0");
  EXPECT_EQ(first.description, "default_pg");
  ASSERT_EQ(first.collectives.size(), kMaxRecordedCollectives);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(first.collectives[i].number, static_cast<long long>(5 + i));
  const RecordedCollective& last = first.collectives.back();
  EXPECT_EQ(last.name, "all_reduce");
  EXPECT_EQ(last.state, "scheduled");
  EXPECT_EQ(last.sizes, "[[3, 4], [2]]");
  EXPECT_EQ(last.types, "Float, Half");
  EXPECT_EQ(last.place, "sync (train.py:50)");
  EXPECT_EQ(groups->at(1).description, "tp");
  EXPECT_EQ(groups->at(1).collectives.at(0).name, "_allgather_base");
}

TEST(ParseFlightRecord, KnowsTheNamesOfEarlierVersions) {
  const auto groups = ParseFlightRecord(Dump({Dict(
      {{"pg_id", Number(4)}, {"seq_id", Number(9)}, {"profiling_name", Text("nccl:barrier")}})}));
  ASSERT_TRUE(groups);
  ASSERT_EQ(groups->size(), 1U);
  EXPECT_EQ(groups->at(0).name, "4");
  EXPECT_EQ(groups->at(0).collectives.at(0).number, 9);
  EXPECT_EQ(groups->at(0).collectives.at(0).sizes, "[]");
  EXPECT_EQ(groups->at(0).collectives.at(0).place, "");
}

TEST(ParseFlightRecord, TakesNothingOfWhatIsNoDump) {
  for (const std::string& text :
       {std::string(), std::string("\x80\x02N."), "\x80\x02" + List({}) + ".",
        "\x80\x02" + Dict({{"entries", "N"}}) + ".", Dump({}).substr(1)})
    EXPECT_FALSE(ParseFlightRecord(text)) << text;
  EXPECT_TRUE(ParseFlightRecord(Dump({"N", List({}), Number(1), Dict({{"seq_id", Text("1")}}),
                                      Dict({{"seq_id", Number(-1)}})}))
                  ->empty());
}

TEST(ParseFlightRecord, HoldsNoMoreThanItsLimits) {
  std::vector<std::string> entries;
  for (int i = 0; i < 40; ++i)
    entries.push_back(Entry(1, "broadcast", "started", std::to_string(i + 1)));
  EXPECT_EQ(ParseFlightRecord(Dump(entries))->size(), kMaxRecordedGroups);
  std::string deep = List({Number(1)});
  for (int i = 0; i < 5; ++i) deep = List({deep});
  const auto groups =
      ParseFlightRecord(Dump({Dict({{"seq_id", Number(1)}, {"input_sizes", deep}})}));
  EXPECT_EQ(groups->at(0).collectives.at(0).sizes, "[[[...]]]");
}

class AskFlightRecorderTest : public testing::Test {
 protected:
  // Makes the FIFO as PyTorch does.
  void MakePipe() { ASSERT_EQ(mkfifo((stem_ + "3.pipe").c_str(), 0666), 0); }
  void Write(const std::string& content) const { std::ofstream(stem_ + "3") << content; }
  std::vector<RecordedGroup> Ask(Environment environment) {
    environment.emplace("RANK", "3");
    return AskFlightRecorder(getpid(), environment, std::chrono::steady_clock::now() + limit_);
  }

  tests::TemporaryDirectory directory_;
  std::string stem_ = directory_ / "";
  std::chrono::milliseconds limit_{200};
  Environment environment_ = {{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", stem_},
                              {"TORCH_FR_DUMP_TEMP_FILE", stem_}};
};

TEST_F(AskFlightRecorderTest, ReadsWhatIsWrittenAtAByte) {
  MakePipe();
  Write(Dump({Entry(1, "of_before", "started")}));
  limit_ = 20s;
  for (const char* const name : {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}) {
    const support::Descriptor pipe(open((stem_ + "3.pipe").c_str(), O_RDONLY | O_NONBLOCK));
    std::thread recorder([&] {
      pollfd ready = {pipe.fd(), POLLIN, 0};
      poll(&ready, 1, -1);
      const std::string dump = Dump({Entry(12, name, "started")});
      Write(dump.substr(0, 200));
      std::this_thread::sleep_for(100ms);  // one that is being written
      Write(dump);
    });
    const auto groups = Ask({{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", stem_}, {name, stem_}});
    recorder.join();
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups[0].collectives.at(0).name, name);
  }
}

TEST_F(AskFlightRecorderTest, LeavesAProcessWithoutARecorderAlone) {
  Write(Dump({Entry(1, "of_before", "started")}));
  EXPECT_TRUE(Ask({}).empty());
  EXPECT_TRUE(Ask(environment_).empty());  // no FIFO
  MakePipe();
  EXPECT_TRUE(Ask(environment_).empty());  // which nobody reads
  fs::remove(stem_ + "3.pipe");
  std::ofstream(stem_ + "3.pipe") << "mine";
  EXPECT_TRUE(Ask(environment_).empty());
  std::ifstream file(stem_ + "3.pipe");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "mine");
}

TEST_F(AskFlightRecorderTest, WaitsNoLongerThanItMay) {
  MakePipe();
  const support::Descriptor pipe(open((stem_ + "3.pipe").c_str(), O_RDONLY | O_NONBLOCK));
  Write(Dump({Entry(1, "of_before", "started")}));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(Ask(environment_).empty());
  EXPECT_GE(std::chrono::steady_clock::now() - start, limit_);
  char byte = 0;
  EXPECT_EQ(read(pipe.fd(), &byte, 1), 1);
}

}  // namespace
}  // namespace launcher
