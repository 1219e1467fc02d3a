// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/flight_recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <tuple>
#include <utility>

#include "launcher/diagnose/finding.h"
#include "launcher/diagnose/pickle.h"
#include "launcher/protocol/rank_variables.h"
#include "support/descriptor.h"
#include "support/file.h"

namespace launcher {
namespace {

using namespace std::chrono_literals;
using RecorderClock = std::chrono::steady_clock;
using Kind = PickleValue::Kind;

constexpr std::size_t kMaxRecordText = 200;

std::string TextOf(const PickleValue& value) {
  return value.kind == Kind::kText ? std::string(value.text.substr(0, kMaxRecordText)) : "";
}

// "[[3, 4], [2]]", down to a depth; more than a line has is cut.
std::string ListText(const Pickle& pickle, const PickleValue& value, int depth) {
  if (value.kind == Kind::kInt) return std::to_string(value.number);
  std::string text = "[";
  for (const std::uint32_t item : value.items) {
    if (text.size() >= kMaxRecordText || depth == 0) return text + "...]";
    text += (text.size() > 1 ? ", " : "") + ListText(pickle, pickle.At(item), depth - 1);
  }
  return text + "]";
}

std::string WordsText(const Pickle& pickle, const PickleValue& list) {
  std::string text;
  for (const std::uint32_t item : list.items) {
    if (text.size() >= kMaxRecordText) return text + "...";
    text += (text.empty() ? "" : ", ") + TextOf(pickle.At(item));
  }
  return text;
}

// The innermost frame of the program's own; "" where the dump has no frames.
std::string PlaceIn(const Pickle& pickle, const PickleValue& frames) {
  std::vector<std::string> stack;
  for (const std::uint32_t index : frames.items) {
    const PickleValue& frame = pickle.At(index);
    if (stack.size() == kMaxFrames) break;
    stack.push_back(TextOf(pickle.Find(frame, "name")) + " (" +
                    TextOf(pickle.Find(frame, "filename")) + ":" +
                    std::to_string(pickle.Find(frame, "line").number) + ")");
  }
  return PlaceOf(stack);
}

RecordedCollective CollectiveOf(const Pickle& pickle, const PickleValue& entry, long long number) {
  RecordedCollective collective;
  collective.number = number;
  collective.name = TextOf(pickle.Find(entry, "profiling_name"));  // "nccl:all_reduce"
  collective.name.erase(0, collective.name.find(':') + 1);
  collective.state = TextOf(pickle.Find(entry, "state"));
  collective.sizes = ListText(pickle, pickle.Find(entry, "input_sizes"), 2);
  collective.types = WordsText(pickle, pickle.Find(entry, "input_dtypes"));
  collective.place = PlaceIn(pickle, pickle.Find(entry, "frames"));
  return collective;
}

// Of one file what changes when it is written anew.
using FileState = std::tuple<ino_t, off_t, time_t, long>;
FileState StateOf(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return {};
  return {info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

// Whether the byte went into a FIFO that a process reads.
bool SendByte(const std::string& path) {
  const support::Descriptor fifo(
      open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat info = {};
  return fifo.is_open() && fstat(fifo.fd(), &info) == 0 && S_ISFIFO(info.st_mode) &&
         write(fifo.fd(), "1", 1) == 1;
}

}  // namespace

std::optional<std::vector<RecordedGroup>> ParseFlightRecord(std::string_view dump) {
  const auto pickle = Pickle::Parse(dump);
  if (!pickle) return std::nullopt;
  const PickleValue& entries = pickle->Find(pickle->root(), "entries");
  if (entries.kind != Kind::kList) return std::nullopt;
  std::vector<RecordedGroup> groups;
  // The last come last.  Those that are looked at first are kept.
  for (std::size_t i = entries.items.size(); i-- > 0;) {
    const PickleValue& entry = pickle->At(entries.items[i]);
    const PickleValue& newer = pickle->Find(entry, "collective_seq_id");
    const PickleValue& number =
        newer.kind == Kind::kInt ? newer : pickle->Find(entry, "seq_id");  // up to PyTorch 2.3
    if (number.kind != Kind::kInt || number.number < 0 || pickle->Find(entry, "is_p2p").number != 0)
      continue;
    const PickleValue& names = pickle->Find(entry, "process_group");  // ("0", "default_pg")
    std::string name, description;
    if (names.kind == Kind::kTuple && names.items.size() == 2) {
      name = TextOf(pickle->At(names.items[0]));
      description = TextOf(pickle->At(names.items[1]));
    } else {
      name = std::to_string(pickle->Find(entry, "pg_id").number);
    }
    auto group = std::ranges::find_if(groups, [&](const RecordedGroup& one) {
      return one.name == name && one.description == description;
    });
    if (group == groups.end()) {
      if (groups.size() == kMaxRecordedGroups) continue;
      group = groups.insert(group, {name, description, {}});
    }
    std::vector<RecordedCollective>& last = group->collectives;
    // Parts of one that were put together have its number.
    const bool is_older = last.empty() || number.number < last.back().number;
    if (is_older && last.size() < kMaxRecordedCollectives)
      last.push_back(CollectiveOf(*pickle, entry, number.number));
  }
  for (RecordedGroup& group : groups) std::ranges::reverse(group.collectives);
  return groups;
}

std::vector<RecordedGroup> AskFlightRecorder(pid_t pid, const Environment& environment,
                                             RecorderClock::time_point deadline) {
  const std::string rank = ValueOr(environment, "RANK", "");
  const std::string stem = ValueOr(environment, kRecorderPipeVariable, "");
  // As the process has it, which may be in a container.
  const std::string root = "/proc/" + std::to_string(pid) + "/root";
  std::vector<std::pair<std::string, FileState>> dumps;
  for (const char* const name : kRecorderDumpVariables) {
    const std::string file = ValueOr(environment, name, "");
    if (file.starts_with('/')) dumps.emplace_back(root + file + rank, StateOf(root + file + rank));
  }
  if (dumps.empty() || !stem.starts_with('/') || !SendByte(root + stem + rank + ".pipe")) return {};
  for (; RecorderClock::now() < deadline; std::this_thread::sleep_for(20ms)) {
    for (const auto& [path, before] : dumps) {
      const FileState now = StateOf(path);
      if (now == FileState() || now == before) continue;
      // One that is being written is no whole one.
      const auto groups = ParseFlightRecord(
          support::ReadWholeFile(path, Pickle::kMaxBytes, support::FileKind::kRegular).content);
      if (groups) return *groups;
    }
  }
  return {};
}

}  // namespace launcher
