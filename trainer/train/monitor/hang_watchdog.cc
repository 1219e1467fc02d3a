// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/monitor/hang_watchdog.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

#include "support/file.h"
#include "support/number.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/rank_consistency.h"
#include "trainer/control/stack_dump_request.h"
#include "trainer/core/thread.h"
#include "trainer/telemetry/stacks/thread_stacks.h"

namespace trainer {
namespace {

std::string Doing(const RankState& state) {
  switch (state.activity) {
    case Activity::kSetUp:
      return "before the first step";
    case Activity::kTraining:
      return fmt::format("in training, step {}", state.step);
    case Activity::kCheckpoint:
      return fmt::format("with the checkpoint of step {}", state.step);
    case Activity::kPause:
      return fmt::format("in a pause, after step {}", state.step);
    case Activity::kEvaluation:
      break;
  }
  return fmt::format("in evaluation, after step {}", state.step);
}

// "rank 2 on n2, rank 3 on n2"; long lists are cut.
std::string Names(const std::vector<int>& ranks, const std::vector<std::string>& hosts) {
  constexpr std::size_t kNamed = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(ranks.size(), kNamed); ++i) {
    names += fmt::format("{}rank {}", i == 0 ? "" : ", ", ranks[i]);
    const std::string& host = hosts[static_cast<std::size_t>(ranks[i])];
    if (!host.empty()) names += " on " + host;
  }
  if (ranks.size() > kNamed) names += fmt::format(" and {} more", ranks.size() - kNamed);
  return names;
}

const char* Verb(const std::vector<int>& ranks, const char* one, const char* many) {
  return ranks.size() == 1 ? one : many;
}

// "rank 3 on n2 has waited 130 s for its data (reading FILE)".
std::string WaitOf(std::span<const RankState> said, double seconds,
                   const std::vector<std::string>& hosts) {
  std::vector<int> readers;
  std::string file;
  for (const RankState& state : said) {
    if (!state.reading) continue;
    readers.push_back(state.rank);
    if (file.empty()) file = state.file;
  }
  return fmt::format("{} {} waited {:.0f} s for {} data{}", Names(readers, hosts),
                     Verb(readers, "has", "have"), seconds, Verb(readers, "its", "their"),
                     file.empty() ? "" : " (reading " + file + ")");
}

// Those who are not heard of are to blame before those who are slow, and these before all.
std::string Cause(const RankState& own, std::span<const RankState> said,
                  const std::vector<std::string>& hosts) {
  const std::vector<int> silent = SilentRanks(said, hosts.size());
  if (!silent.empty()) {
    return fmt::format("{} {} not answer: stopped, or the node is out of reach",
                       Names(silent, hosts), Verb(silent, "does", "do"));
  }
  std::vector<int> slow;
  bool all_read = true;
  for (const RankState& state : said) {
    if (state.waiting) continue;
    slow.push_back(state.rank);
    all_read = all_read && state.reading;
  }
  if (!slow.empty() && all_read) {
    return WaitOf(said, own.seconds, hosts) + ": the file system hangs there";
  }
  if (!slow.empty()) {
    return fmt::format("{} {} still at work: input, computation or file system hang there",
                       Names(slow, hosts), Verb(slow, "is", "are"));
  }
  return fmt::format("all {} wait for each other: the network between their nodes fails",
                     support::Counted(hosts.size(), "rank"));
}

}  // namespace

std::string ToText(const RankState& state) {
  return fmt::format("{} {} {} {:d} {:.3f} {:d} {}\n", state.rank, static_cast<int>(state.activity),
                     state.step, state.waiting, state.seconds, state.reading, state.file);
}

bool FromText(const std::string& text, RankState& state) {
  std::istringstream in(text);
  int activity = -1;
  if (!(in >> state.rank >> activity >> state.step >> state.waiting >> state.seconds >>
        state.reading)) {
    return false;
  }
  if (activity < 0 || activity >= static_cast<int>(kActivities)) return false;
  state.activity = static_cast<Activity>(activity);
  in.ignore();
  state.file.clear();
  std::getline(in, state.file);
  return true;
}

std::vector<RankState> StillResponding(std::span<const RankState> said, double bound) {
  std::vector<RankState> received;
  std::ranges::copy_if(said, std::back_inserter(received), [&](const RankState& state) {
    return !state.reading || state.unchanged_seconds < bound;
  });
  return received;
}

std::vector<int> SilentRanks(std::span<const RankState> said, std::size_t ranks) {
  std::vector<bool> received(ranks);
  for (const RankState& state : said) received[static_cast<std::size_t>(state.rank)] = true;
  std::vector<int> silent;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (!received[rank]) silent.push_back(static_cast<int>(rank));
  }
  return silent;
}

bool IsInputWait(std::span<const RankState> received, std::size_t ranks) {
  const auto reads = [](const RankState& state) { return state.reading; };
  const auto is_excused = [](const RankState& state) { return state.waiting || state.reading; };
  return SilentRanks(received, ranks).empty() && std::ranges::all_of(received, is_excused) &&
         std::ranges::any_of(received, reads);
}

std::string InputWaitReport(const RankState& own, std::span<const RankState> received,
                            const std::vector<std::string>& hosts) {
  const auto readers = std::ranges::count_if(received, &RankState::reading);
  std::string others;
  if (static_cast<std::size_t>(readers) < received.size()) {
    others = readers == 1 ? "; the others wait for it" : "; the others wait for them";
  }
  return WaitOf(received, own.seconds, hosts) + others;
}

std::string DescribeState(const RankState& state) {
  const char* const how = state.waiting   ? "waiting for other ranks"
                          : state.reading ? "waiting for its data"
                                          : "at work of its own";
  const std::string text = Doing(state) + ", " + how;
  constexpr double kLoggedSeconds = 2;  // the clock of a healthy rank may be behind by one
  return state.seconds < kLoggedSeconds
             ? text
             : fmt::format("{}, no progress for {:.0f} s", text, state.seconds);
}

std::string DescribeOddOne(std::span<const RankState> said, const std::vector<std::string>& briefs,
                           const std::vector<std::string>& hosts) {
  std::map<std::string, int> counts;
  for (const std::string& brief : briefs) {
    if (!brief.empty()) ++counts[brief];
  }
  if (counts.empty()) return "";
  const auto& [usual, count] =
      *std::ranges::max_element(counts, {}, [](const auto& counted) { return counted.second; });
  const bool has_majority = 2 * count > static_cast<int>(briefs.size());
  for (const RankState& state : said) {
    const std::string& brief = briefs[static_cast<std::size_t>(state.rank)];
    const bool is_odd = !state.waiting || (has_majority && brief != usual);
    if (brief.empty() || !is_odd) continue;
    const std::string others = has_majority && brief != usual ? ", most others in " + usual : "";
    return "; " + Names({state.rank}, hosts) + " is in " + brief + others;
  }
  return "";
}

std::string HangReport(const RankState& own, std::span<const RankState> said,
                       const std::vector<std::string>& hosts) {
  const bool knows_others = std::any_of(
      said.begin(), said.end(), [&](const RankState& state) { return state.rank == own.rank; });
  return fmt::format("no progress for {:.0f} s {}: {}", own.seconds, Doing(own),
                     knows_others ? Cause(own, said, hosts)
                                  : "another rank has said why, or --model_dir cannot be written");
}

namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr double kTimesLongest = 5;
constexpr double kTimesFloor = 10;    // where nothing is known yet
constexpr int kWarmUpHeartbeats = 5;  // all of the first training step, if it has one batch
constexpr double kTimesInput = 10;    // of the bound: then ranks that wait for data end the run too
constexpr double kLogShare = 0.5;     // of the bound: then a rank writes its state
constexpr double kAgainShare =
    0.25;                       // of the bound: between two looks at a rank that waits for data
constexpr double kGrace = 1.5;  // of the bound: for what follows such a wait
constexpr double kOthersTurn = 0.2;  // of the bound: more than the lowest rank takes to speak
constexpr std::uint64_t kMaxStateBytes = 65536;
constexpr char kBriefEnding[] = ".brief";  // of the file beside that of a rank's state

// What `work` returns, on a thread of its own.  Where it takes longer, nothing, and the thread is
// left behind with all that it uses.
std::vector<ThreadStack> StacksWithin(std::chrono::milliseconds time,
                                      std::function<std::vector<ThreadStack>()> work) {
  try {
    std::packaged_task<std::vector<ThreadStack>()> task(std::move(work));
    std::future<std::vector<ThreadStack>> stacks = task.get_future();
    std::thread(std::move(task)).detach();
    if (stacks.wait_for(time) == std::future_status::ready) return stacks.get();
  } catch (const std::exception&) {
    // The report is worth its line without stacks too.
  }
  return {};
}

}  // namespace

HangWatchdog::HangWatchdog(HangWatchdogOptions options)
    : options_(std::move(options)),
      directory_(options_.model_dir / (".hang-" + options_.run_name)) {
  peers_.hosts.resize(static_cast<std::size_t>(options_.size));
  peers_.processes.resize(peers_.hosts.size());
  state_.rank = options_.rank;
  PrepareThreadStacks();
  RemoveState();  // of a run of the same name that was killed
  thread_ = StartThread("the thread that looks for hung ranks", [this] { Run(); });
}

HangWatchdog::~HangWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopping_changed_.notify_one();
  thread_.join();
  if (logged_) RemoveState();
}

void HangWatchdog::Pause() {
  const std::lock_guard lock(mutex_);
  paused_ = true;
}

void HangWatchdog::ExchangeHosts(Communicator& communicator) {
  Peers peers;
  peers.hosts = GatherTexts(communicator, options_.host);
  peers.processes = GatherNumbers(static_cast<std::uint64_t>(::getpid()), communicator);
  const std::lock_guard lock(mutex_);
  paused_ = false;
  state_.waiting = false;
  TouchProgress();
  peers_ = std::move(peers);
}

void HangWatchdog::Enter(Activity activity, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  TouchProgress();
  state_.activity = activity;
  state_.step = step;
}

void HangWatchdog::Begin(bool RankState::*wait) {
  const std::lock_guard lock(mutex_);
  state_.*wait = true;
}

void HangWatchdog::End(bool RankState::*wait) {
  const std::lock_guard lock(mutex_);
  state_.*wait = false;
  TouchProgress();
}

std::string HangWatchdog::Describe() const {
  const std::lock_guard lock(mutex_);
  return DescribeState(state_);
}

void HangWatchdog::TouchProgress() {
  History& history = history_[static_cast<std::size_t>(state_.activity)];
  // What was longer than the bound was a hang, or a wait for data that was excused: no measure.
  const bool counts = history.heartbeats >= WarmUpHeartbeats() && state_.seconds < Bound();
  ++history.heartbeats;
  if (counts) history.longest = std::max(history.longest, state_.seconds);
  state_.seconds = 0;
  report_again_ = recheck_at_ = excused_at_ = log_again_ = turn_ = 0;
  ++progress_count_;
}

std::int64_t HangWatchdog::WarmUpHeartbeats() const {
  if (state_.activity == Activity::kTraining) return kWarmUpHeartbeats + 2 * (options_.batches - 1);
  // An evaluation begins with one call for the statistics of each rank.
  if (state_.activity == Activity::kEvaluation) return kWarmUpHeartbeats + options_.size;
  return kWarmUpHeartbeats;
}

double HangWatchdog::Bound() const {
  const History& history = history_[static_cast<std::size_t>(state_.activity)];
  const bool steady = state_.activity == Activity::kTraining ||
                      state_.activity == Activity::kEvaluation ||
                      state_.activity == Activity::kPause;
  const double floor = options_.floor_seconds;
  return std::max(steady && history.heartbeats >= WarmUpHeartbeats() ? floor : kTimesFloor * floor,
                  kTimesLongest * history.longest);
}

void HangWatchdog::Run() {
  const double tick = std::clamp(options_.floor_seconds / 20, 0.05, 1.0);
  auto last = Clock::now();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    stopping_changed_.wait_for(lock, std::chrono::duration<double>(tick));
    const auto now = Clock::now();
    if (paused_) {
      last = now;
      continue;
    }
    // A process that was stopped has seen no time pass.
    state_.seconds += std::min(std::chrono::duration<double>(now - last).count(), 2 * tick);
    last = now;
    Look(lock);
  }
}

// Files are touched without the lock: a file system that hangs must not stop the loop as well.
void HangWatchdog::Look(std::unique_lock<std::mutex>& lock) {
  if (logged_ && last_reported_beat_ != progress_count_) {
    logged_ = false;
    lock.unlock();
    RemoveState();
    lock.lock();
  }
  const double bound = Bound();
  const bool is_due = logged_ ? state_.reading && state_.seconds >= report_again_
                              : state_.seconds >= kLogShare * bound;
  if (is_due) {
    if (!logged_) words_.assign(static_cast<std::size_t>(options_.size), {});
    logged_ = true;
    last_reported_beat_ = progress_count_;
    report_again_ = state_.seconds + kAgainShare * bound;
    RankState state = state_;
    lock.unlock();
    if (state.reading) state.file = FileBeingRead();
    WriteState(state);
    lock.lock();
  }
  if (!logged_ || HasProgressed() || state_.seconds < std::max(bound, recheck_at_)) return;
  Check(lock, bound);
}

// After those who wait for data have got them, they have some time to come where the others are.
void HangWatchdog::Check(std::unique_lock<std::mutex>& lock, double bound) {
  const RankState own = state_;
  const Peers peers = peers_;  // the loop may put others in their place
  lock.unlock();
  const std::vector<RankState> received = StillResponding(ReadStates(own.seconds), bound);
  const bool is_lowest = !received.empty() && received.front().rank == own.rank;
  const bool is_excused =
      own.seconds < kTimesInput * bound && IsInputWait(received, peers.hosts.size());
  lock.lock();
  if (HasProgressed()) return;
  if (is_excused) {
    excused_at_ = own.seconds;
    recheck_at_ =
        std::min(own.seconds + (is_lowest ? kAgainShare : 1) * bound, kTimesInput * bound);
    if (!is_lowest || own.seconds < log_again_) return;
    log_again_ = own.seconds + bound;
    lock.unlock();
    options_.on_wait(InputWaitReport(own, received, peers.hosts));
    lock.lock();
    return;
  }
  if (excused_at_ > 0 &&
      own.seconds < std::min(excused_at_ + kGrace * bound, kTimesInput * bound)) {
    return;
  }
  if (turn_ == 0) {
    const std::chrono::duration<double> stacks_time =
        options_.own_stacks_time + options_.others_stacks_time;
    turn_ = own.seconds + kOthersTurn * bound + stacks_time.count();
    lock.unlock();
    WriteStacks(own);
    lock.lock();
    if (HasProgressed()) return;
  }
  if (!is_lowest && state_.seconds < turn_) {
    recheck_at_ = turn_;
    return;
  }
  const std::vector<std::string> briefs = AwaitBriefs(received, lock);
  if (HasProgressed()) return;
  lock.unlock();
  const std::string report = LogDispatcher(own, received, briefs, peers);
  lock.lock();
  // From here on nobody goes on: the loop waits for the lock at its next beat.
  if (HasProgressed()) return;
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
  options_.on_hang(report);
  stopping_ = true;
}

std::string HangWatchdog::LogDispatcher(const RankState& own,
                                        const std::vector<RankState>& received,
                                        const std::vector<std::string>& briefs,
                                        const Peers& peers) const {
  std::string report = HangReport(own, received, peers.hosts);
  if (received.empty()) return report;
  report += StatesOfSilent(SilentRanks(received, peers.hosts.size()), peers) +
            DescribeOddOne(received, briefs, peers.hosts);
  const auto written = std::ssize(briefs) - std::ranges::count(briefs, "");
  if (written == 0) return report;
  return report + fmt::format("; stacks of {} are in {}",
                              support::Counted(static_cast<long long>(written), "rank"),
                              (options_.model_dir / kStackDumpDirectoryName).string());
}

// Of those on this node, as Linux sees them.
std::string HangWatchdog::StatesOfSilent(const std::vector<int>& silent, const Peers& peers) const {
  std::string text;
  for (const int rank : silent) {
    const auto index = static_cast<std::size_t>(rank);
    if (peers.processes[index] == 0 || peers.hosts[index] != options_.host) continue;
    const std::string process = std::to_string(peers.processes[index]);
    const std::string state = StateInKernel("/proc/" + process);
    text += fmt::format("; process {} of rank {} {}", process, rank,
                        state.empty() ? "is gone" : (state == "stopped" ? "is " : "") + state);
  }
  return text;
}

// A brief of it lies beside the states.  What hangs may be the file system of the stacks, or that
// of a library whose functions are looked up: the report must come then too.
void HangWatchdog::WriteStacks(const RankState& state) const {
  const StackDumpOptions file = {
      .model_dir = options_.model_dir,
      .rank = state.rank,
      .host = options_.host,
      .doing = fmt::format("no progress for {:.0f} s, {}", state.seconds,
                           state.waiting ? "waiting for other ranks" : "at work of its own"),
      .command = 0};
  const std::vector<ThreadStack> stacks = StacksWithin(
      options_.own_stacks_time, [write = options_.write_stacks, file] { return write(file); });
  if (stacks.empty()) return;  // the report then counts one less
  const std::string brief = InBrief(stacks.front());
  support::ReplaceFile(directory_ / (std::to_string(state.rank) + kBriefEnding),
                       (brief.empty() ? "?" : brief) + "\n");
}

// The others write their stacks at this moment: waits for them, but not for long, and not once the
// run has gone on.
std::vector<std::string> HangWatchdog::AwaitBriefs(const std::vector<RankState>& received,
                                                   std::unique_lock<std::mutex>& lock) {
  const auto end = Clock::now() + options_.others_stacks_time;
  for (;;) {
    lock.unlock();
    std::vector<std::string> briefs = ReadBriefs(received);
    lock.lock();
    const bool are_there = std::ranges::all_of(received, [&](const RankState& state) {
      return state.rank == options_.rank || !briefs[static_cast<std::size_t>(state.rank)].empty();
    });
    if (are_there || HasProgressed() || Clock::now() >= end) return briefs;
    stopping_changed_.wait_for(lock, std::chrono::milliseconds(50));
  }
}

// By rank; "" of those that have written no stacks.
std::vector<std::string> HangWatchdog::ReadBriefs(const std::vector<RankState>& received) const {
  std::vector<std::string> briefs(static_cast<std::size_t>(options_.size));
  for (const RankState& state : received) {
    std::ifstream file(directory_ / (std::to_string(state.rank) + kBriefEnding));
    std::getline(file, briefs[static_cast<std::size_t>(state.rank)]);
  }
  return briefs;
}

void HangWatchdog::WriteState(const RankState& state) const {
  std::error_code ignored;  // who cannot write is taken for silent; nothing else can be done
  fs::create_directories(directory_, ignored);
  support::ReplaceFile(directory_ / std::to_string(state.rank), ToText(state));
}

void HangWatchdog::RemoveState() const {
  std::error_code ignored;
  const std::string rank = std::to_string(options_.rank);
  fs::remove(directory_ / rank, ignored);
  fs::remove(directory_ / (rank + kBriefEnding), ignored);
  fs::remove(directory_, ignored);  // by the last of them
}

// In the order of the ranks, `seconds` after the last progress; none if another has reported and
// removed them.
std::vector<RankState> HangWatchdog::ReadStates(double seconds) {
  std::vector<RankState> said;
  for (std::size_t rank = 0; rank < words_.size(); ++rank) {
    const support::WholeFile file =
        support::ReadWholeFile(directory_ / std::to_string(rank), kMaxStateBytes);
    RankState state;
    if (!FromText(file.content, state) || state.rank != static_cast<int>(rank)) continue;
    Words& last = words_[rank];
    if (last.text != file.content) last = {file.content, seconds};
    state.unchanged_seconds = seconds - last.since;
    said.push_back(state);
  }
  return said;
}

}  // namespace trainer
