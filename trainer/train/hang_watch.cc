// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/hang_watch.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <utility>

#include "trainer/comm/gather.h"
#include "trainer/core/thread.h"

namespace trainer {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr double kTimesLongest = 5;
constexpr double kTimesFloor = 10;   // where nothing is known yet
constexpr int kWarmUpBeats = 4;      // all of the first training step
constexpr double kTellShare = 0.5;   // of the bound: then a rank writes its state
constexpr double kOthersTurn = 1.2;  // of the bound: the lowest rank has had time to end the run

}  // namespace

HangWatch::HangWatch(HangWatchOptions options)
    : options_(std::move(options)),
      folder_(options_.model_dir / (".hang-" + options_.run_name)),
      hosts_(static_cast<std::size_t>(options_.size)) {
  state_.rank = options_.rank;
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
  const std::lock_guard lock(mutex_);
  paused_ = false;
  state_.waiting = false;
  Beat();
  hosts_ = std::move(hosts);
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

void HangWatch::Beat() {
  History& history = history_[static_cast<std::size_t>(state_.activity)];
  if (++history.beats > kWarmUpBeats) history.longest = std::max(history.longest, state_.seconds);
  state_.seconds = 0;
  ++beat_;
}

double HangWatch::Bound() const {
  const History& history = history_[static_cast<std::size_t>(state_.activity)];
  const bool steady = state_.activity == Activity::kTraining ||
                      state_.activity == Activity::kEvaluation ||
                      state_.activity == Activity::kPause;
  const double floor = options_.floor_seconds;
  return std::max(steady && history.beats >= kWarmUpBeats ? floor : kTimesFloor * floor,
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
  if (!told_ && state_.seconds >= kTellShare * bound) {
    told_ = true;
    told_beat_ = beat_;
    const RankState state = state_;
    lock.unlock();
    WriteState(state);
    lock.lock();
  }
  if (!told_ || told_beat_ != beat_ || state_.seconds < bound) return;
  const RankState own = state_;
  lock.unlock();
  const std::vector<RankState> said = ReadStates();
  const bool is_lowest = !said.empty() && said.front().rank == own.rank;
  lock.lock();
  if (told_beat_ != beat_ || (!is_lowest && state_.seconds < kOthersTurn * bound)) return;
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  options_.on_hang(HangReport(own, said, hosts_));
  stopping_ = true;
}

void HangWatch::WriteState(const RankState& state) const {
  std::error_code ignored;  // who cannot write is taken for silent; nothing else can be done
  fs::create_directories(folder_, ignored);
  const fs::path file = folder_ / std::to_string(state.rank);
  const fs::path part = file.string() + ".part";
  std::ofstream(part) << ToText(state);
  fs::rename(part, file, ignored);
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
    std::ifstream file(folder_ / std::to_string(rank));
    const std::string text(std::istreambuf_iterator<char>(file), {});
    RankState state;
    if (FromText(text, state) && state.rank == rank) said.push_back(state);
  }
  return said;
}

namespace {

class WatchedCommunicator final : public Communicator {
 public:
  WatchedCommunicator(Communicator& inner, HangWatch& watch) : inner_(inner), watch_(watch) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string description() const override { return inner_.description(); }
  bool sums_device_memory() const override { return inner_.sums_device_memory(); }
  void StartAllReduce(void* data, std::size_t count, DType dtype, Reduction reduction,
                      Stream& producer) override {
    inner_.StartAllReduce(data, count, dtype, reduction, producer);
  }
  void Finish(Stream& consumer) override {
    Wait([&] { inner_.Finish(consumer); });
  }
  void Synchronize(Stream& stream) override {
    Wait([&] { inner_.Synchronize(stream); });
  }
  void AllReduceSum(std::span<double> values) override {
    Wait([&] { inner_.AllReduceSum(values); });
  }
  void AllReduceMax(std::span<double> values) override {
    Wait([&] { inner_.AllReduceMax(values); });
  }
  void Broadcast(void* data, std::size_t bytes, int root) override {
    Wait([&] { inner_.Broadcast(data, bytes, root); });
  }
  void Barrier() override {
    Wait([&] { inner_.Barrier(); });
  }
  void Abort(int exit_code) override { inner_.Abort(exit_code); }

 private:
  // An exception ends the run, so nobody asks any more whether it waits.
  template <typename Call>
  void Wait(const Call& call) {
    watch_.BeginWaiting();
    call();
    watch_.EndWaiting();
  }

  Communicator& inner_;
  HangWatch& watch_;
};

}  // namespace

std::unique_ptr<Communicator> MakeWatchedCommunicator(Communicator& communicator,
                                                      HangWatch& watch) {
  return std::make_unique<WatchedCommunicator>(communicator, watch);
}

}  // namespace trainer
