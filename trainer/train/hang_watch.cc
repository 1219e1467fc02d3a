// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/hang_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <utility>

#include "support/counted.h"
#include "support/file.h"
#include "trainer/comm/agreement.h"
#include "trainer/comm/communicator.h"
#include "trainer/control/stacks_request.h"
#include "trainer/core/thread.h"
#include "trainer/telemetry/thread_stacks.h"
#include "trainer/train/stacks_file.h"

namespace trainer {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr double kTimesLongest = 5;
constexpr double kTimesFloor = 10;  // where nothing is known yet
constexpr int kWarmUpBeats = 5;     // all of the first training step, if it has one batch
constexpr double kTimesInput = 10;  // of the bound: then ranks that wait for data end the run too
constexpr double kTellShare = 0.5;  // of the bound: then a rank writes its state
constexpr double kAgainShare =
    0.25;                       // of the bound: between two looks at a rank that waits for data
constexpr double kGrace = 1.5;  // of the bound: for what follows such a wait
constexpr std::chrono::seconds kStackTime{5};  // to wait for the stacks of others
constexpr double kOthersTurn = 1.2;  // of the bound: the lowest rank has had time to end the run
constexpr std::uint64_t kMaxStateBytes = 65536;

}  // namespace

HangWatch::HangWatch(HangWatchOptions options)
    : options_(std::move(options)),
      folder_(options_.model_dir / (".hang-" + options_.run_name)),
      hosts_(static_cast<std::size_t>(options_.size)),
      processes_(hosts_.size()) {
  state_.rank = options_.rank;
  PrepareThreadStacks();
  RemoveState();  // of a run of the same name that was killed
  thread_ = StartThread("the thread that looks for hung ranks", [this] { Run(); });
}

HangWatch::~HangWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopping_changed_.notify_one();
  thread_.join();
  if (told_) RemoveState();
}

void HangWatch::Pause() {
  const std::lock_guard lock(mutex_);
  paused_ = true;
}

void HangWatch::ExchangeHosts(Communicator& communicator) {
  std::vector<std::string> hosts = GatherTexts(communicator, options_.host);
  std::vector<std::uint64_t> processes =
      GatherNumbers(static_cast<std::uint64_t>(::getpid()), communicator);
  const std::lock_guard lock(mutex_);
  paused_ = false;
  state_.waiting = false;
  Beat();
  hosts_ = std::move(hosts);
  processes_ = std::move(processes);
}

void HangWatch::Enter(Activity activity, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  Beat();
  state_.activity = activity;
  state_.step = step;
}

void HangWatch::BeginWaiting() {
  const std::lock_guard lock(mutex_);
  state_.waiting = true;
}

void HangWatch::EndWaiting() {
  const std::lock_guard lock(mutex_);
  state_.waiting = false;
  Beat();
}

void HangWatch::BeginReading() {
  const std::lock_guard lock(mutex_);
  state_.reading = true;
}

void HangWatch::EndReading() {
  const std::lock_guard lock(mutex_);
  state_.reading = false;
  Beat();
}

std::string HangWatch::Describe() const {
  const std::lock_guard lock(mutex_);
  return DescribeState(state_);
}

void HangWatch::Beat() {
  History& history = history_[static_cast<std::size_t>(state_.activity)];
  // What was longer than the bound was a hang, or a wait for data that was excused: no measure.
  const bool counts = history.beats >= WarmUpBeats() && state_.seconds < Bound();
  ++history.beats;
  if (counts) history.longest = std::max(history.longest, state_.seconds);
  state_.seconds = 0;
  tell_again_ = judge_again_ = excused_at_ = say_again_ = 0;
  has_stacks_ = false;
  ++beat_;
}

std::int64_t HangWatch::WarmUpBeats() const {
  const bool is_training = state_.activity == Activity::kTraining;
  return kWarmUpBeats + (is_training ? 2 * (options_.batches - 1) : 0);
}

double HangWatch::Bound() const {
  const History& history = history_[static_cast<std::size_t>(state_.activity)];
  const bool steady = state_.activity == Activity::kTraining ||
                      state_.activity == Activity::kEvaluation ||
                      state_.activity == Activity::kPause;
  const double floor = options_.floor_seconds;
  return std::max(steady && history.beats >= WarmUpBeats() ? floor : kTimesFloor * floor,
                  kTimesLongest * history.longest);
}

void HangWatch::Run() {
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
void HangWatch::Look(std::unique_lock<std::mutex>& lock) {
  if (told_ && told_beat_ != beat_) {
    told_ = false;
    lock.unlock();
    RemoveState();
    lock.lock();
  }
  const double bound = Bound();
  const bool is_due = told_ ? state_.reading && state_.seconds >= tell_again_
                            : state_.seconds >= kTellShare * bound;
  if (is_due) {
    told_ = true;
    told_beat_ = beat_;
    tell_again_ = state_.seconds + kAgainShare * bound;
    RankState state = state_;
    lock.unlock();
    if (state.reading) state.file = FileBeingRead();
    WriteState(state);
    lock.lock();
  }
  if (!told_ || told_beat_ != beat_ || state_.seconds < std::max(bound, judge_again_)) return;
  Judge(lock, bound);
}

// After those who wait for data have got them, they have some time to come where the others are.
void HangWatch::Judge(std::unique_lock<std::mutex>& lock, double bound) {
  const RankState own = state_;
  lock.unlock();
  const std::vector<RankState> said = ReadStates();
  const bool is_lowest = !said.empty() && said.front().rank == own.rank;
  const bool is_excused = own.seconds < kTimesInput * bound &&
                          IsInputWait(own, said, static_cast<std::size_t>(options_.size), bound);
  lock.lock();
  if (told_beat_ != beat_) return;
  if (is_excused) {
    excused_at_ = own.seconds;
    judge_again_ =
        std::min(own.seconds + (is_lowest ? kAgainShare : 1) * bound, kTimesInput * bound);
    if (!is_lowest || own.seconds < say_again_) return;
    say_again_ = own.seconds + bound;
    lock.unlock();
    options_.on_wait(InputWaitReport(own, said, hosts_));
    lock.lock();
    return;
  }
  if (excused_at_ > 0 &&
      own.seconds < std::min(excused_at_ + kGrace * bound, kTimesInput * bound)) {
    return;
  }
  if (!has_stacks_) {
    has_stacks_ = true;
    lock.unlock();
    WriteStacks(own);
    lock.lock();
    if (told_beat_ != beat_) return;
  }
  if (!is_lowest && state_.seconds < kOthersTurn * bound) return;
  lock.unlock();
  const std::string report = Report(own, StillHeard(own, said, bound));
  lock.lock();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  options_.on_hang(report);
  stopping_ = true;
}

// The others write their stacks at this moment: waits for them, but not for long.
std::string HangWatch::Report(const RankState& own, std::vector<RankState> said) const {
  const auto end = Clock::now() + kStackTime;
  std::vector<std::string> briefs = ReadBriefs(said);
  const auto written = [&] {
    return briefs.size() - static_cast<std::size_t>(std::ranges::count(briefs, ""));
  };
  while (written() < said.size() && Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    briefs = ReadBriefs(said);
  }
  std::string report = HangReport(own, said, hosts_);
  if (said.empty()) return report;
  report += StatesOfSilent(SilentRanks(said, hosts_.size())) + DescribeOddOne(said, briefs, hosts_);
  if (written() == 0) return report;
  return report + fmt::format("; stacks of {} are in {}",
                              support::Counted(static_cast<long long>(written()), "rank"),
                              (options_.model_dir / kStacksFolderName).string());
}

// Of those on this node, as Linux sees them.
std::string HangWatch::StatesOfSilent(const std::vector<int>& silent) const {
  std::string text;
  for (const int rank : silent) {
    const auto index = static_cast<std::size_t>(rank);
    if (processes_[index] == 0 || hosts_[index] != options_.host) continue;
    const std::string process = std::to_string(processes_[index]);
    const std::string state = StateInKernel("/proc/" + process);
    text += fmt::format("; process {} of rank {} {}", process, rank,
                        state.empty() ? "is gone" : (state == "stopped" ? "is " : "") + state);
  }
  return text;
}

// A brief of it lies beside the states.
void HangWatch::WriteStacks(const RankState& state) const {
  const std::vector<ThreadStack> stacks = WriteStacksFile(
      {.model_dir = options_.model_dir,
       .rank = state.rank,
       .host = options_.host,
       .doing = fmt::format("no progress for {:.0f} s, {}", state.seconds,
                            state.waiting ? "waiting for other ranks" : "at work of its own"),
       .order = 0});
  if (stacks.empty()) return;  // the report then counts one less
  std::error_code ignored;
  const std::string brief = InBrief(stacks.front());
  const fs::path brief_file = folder_ / (std::to_string(state.rank) + ".brief");
  std::ofstream(brief_file.string() + ".part") << (brief.empty() ? "?" : brief) << '\n';
  fs::rename(brief_file.string() + ".part", brief_file, ignored);
}

// By rank; "" of those that have written no stacks.
std::vector<std::string> HangWatch::ReadBriefs(const std::vector<RankState>& said) const {
  std::vector<std::string> briefs(hosts_.size());
  for (const RankState& state : said) {
    std::ifstream file(folder_ / (std::to_string(state.rank) + ".brief"));
    std::getline(file, briefs[static_cast<std::size_t>(state.rank)]);
  }
  return briefs;
}

void HangWatch::WriteState(const RankState& state) const {
  std::error_code ignored;  // who cannot write is taken for silent; nothing else can be done
  fs::create_directories(folder_, ignored);
  support::ReplaceFile(folder_ / std::to_string(state.rank), ToText(state));
}

void HangWatch::RemoveState() const {
  std::error_code ignored;
  fs::remove(folder_ / std::to_string(state_.rank), ignored);
  fs::remove(folder_, ignored);  // by the last of them
}

// In the order of the ranks; none if another has reported and removed them.
std::vector<RankState> HangWatch::ReadStates() const {
  std::vector<RankState> said;
  for (int rank = 0; rank < options_.size; ++rank) {
    const support::WholeFile file =
        support::ReadWholeFile(folder_ / std::to_string(rank), kMaxStateBytes);
    RankState state;
    if (FromText(file.content, state) && state.rank == rank) said.push_back(state);
  }
  return said;
}

}  // namespace trainer
