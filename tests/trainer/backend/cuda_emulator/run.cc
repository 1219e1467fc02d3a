// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/backend/cuda_emulator/run.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/backend/cuda_emulator/fiber.h"
#include "tests/trainer/backend/cuda_emulator/shared_memory.h"

uint3 threadIdx{};
uint3 blockIdx{};
dim3 blockDim;
dim3 gridDim;

namespace cuda_emulator {
namespace {

constexpr unsigned kWarp = 32;
constexpr std::uint64_t kPoison = ~std::uint64_t{0};

enum class State : std::uint8_t { kReady, kInSyncBlock, kInExchange, kReturned };

constexpr std::size_t kCopyBytes = 16;
struct Copy {
  void* to;
  const void* from;
  Place place;  // where it was started
};

struct Thread {
  uint3 index{};
  State state = State::kReady;
  Place place{};
  Fiber* fiber = nullptr;
  std::uint64_t offered = kPoison;
  std::uint64_t received = kPoison;
  unsigned source = 0;
  void* own = nullptr;  // of Together
  WarpWork work = nullptr;
  std::vector<Copy> copies;             // under way
  std::deque<std::size_t> copy_groups;  // how many of them are in each
};

bool Waits(const Thread& thread) {
  return thread.state == State::kInSyncBlock || thread.state == State::kInExchange;
}

bool Meet(const Thread& a, const Thread& b) {
  return a.state == b.state && a.work == b.work && a.place.line == b.place.line &&
         (a.place.file == b.place.file || std::strcmp(a.place.file, b.place.file) == 0);
}

std::string Text(const uint3& index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " +
         std::to_string(index.z) + ")";
}

std::string Describe(const Thread& thread) {
  std::string text = "thread " + Text(thread.index);
  if (thread.state == State::kReturned) return text + " has returned";
  text += thread.state == State::kInSyncBlock ? " waits in __syncthreads at "
          : thread.work != nullptr            ? " waits in an instruction of its warp at "
                                              : " waits in a shuffle or __syncwarp at ";
  return text + thread.place.file + ":" + std::to_string(thread.place.line);
}

// Unwinds the threads that still wait when a launch has failed.
struct Cancelled {};

class Machine {
 public:
  void Run(dim3 grid, dim3 block, const std::function<void()>& kernel);
  Thread& current() { return *current_; }
  void Wait(State state, Place place);

 private:
  void RunBlock(bool descending);
  // As far as it goes without the other warps.
  void RunWarp(std::size_t first, bool descending);
  void RunThread(Thread& thread);
  // Of this warp; null if all have been started, or something has failed.
  Thread* NextToStart();
  // Until its thread waits or, in an idle fiber, until one does or all of the warp have started.
  void Continue(Fiber& fiber);
  Fiber& IdleFiber();
  bool ReleaseBlock();
  bool ReleaseWarp(std::size_t first);
  // The thread that keeps `waiting` from going on, or null.
  const Thread* Missing(const Thread& waiting) const;
  void Cancel();

  std::mutex mutex_;
  const std::function<void()>* kernel_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<Thread*> lanes_;  // of the warp that runs, in the order in which they go
  std::size_t next_ = 0;        // lanes_ before it have been started
  Thread* current_ = nullptr;
  Fiber* running_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::exception_ptr error_;
  bool cancelled_ = false;
};

Thread* Machine::NextToStart() {
  while (next_ < lanes_.size() && error_ == nullptr) {
    Thread* thread = lanes_[next_++];
    if (thread->fiber == nullptr) return thread;
  }
  return nullptr;
}

void Machine::RunThread(Thread& thread) {
  thread.fiber = running_;
  current_ = &thread;
  threadIdx = thread.index;
  try {
    (*kernel_)();
  } catch (const Cancelled&) {
  } catch (...) {
    if (error_ == nullptr) error_ = std::current_exception();
  }
  thread.state = State::kReturned;
  thread.offered = kPoison;
}

Fiber& Machine::IdleFiber() {
  if (idle_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>([this] {
      // A fiber whose thread has returned starts the next one: threads that never wait share one.
      while (true) {
        while (Thread* thread = NextToStart()) RunThread(*thread);
        idle_.push_back(running_);
        running_->Suspend();
      }
    }));
    return *fibers_.back();
  }
  Fiber& fiber = *idle_.back();
  idle_.pop_back();
  return fiber;
}

void Machine::Continue(Fiber& fiber) {
  running_ = &fiber;
  fiber.Resume();
  if (error_ != nullptr && !cancelled_) std::rethrow_exception(error_);
}

void Machine::Wait(State state, Place place) {
  Thread& self = *current_;
  self.state = state;
  self.place = place;
  self.fiber->Suspend();
  if (cancelled_) throw Cancelled();
  current_ = &self;
  threadIdx = self.index;
}

const Thread* Machine::Missing(const Thread& waiting) const {
  std::size_t begin = 0;
  std::size_t end = threads_.size();
  if (waiting.state == State::kInExchange) {
    begin = static_cast<std::size_t>(&waiting - threads_.data()) / kWarp * kWarp;
    end = std::min(end, begin + kWarp);
  }
  for (std::size_t i = begin; i < end; ++i) {
    const Thread& other = threads_[i];
    const bool may_be_gone = waiting.state == State::kInExchange && waiting.work == nullptr;
    if (may_be_gone && other.state == State::kReturned) continue;
    if (!Meet(waiting, other)) return &other;
  }
  return nullptr;
}

bool Machine::ReleaseBlock() {
  if (threads_[0].state != State::kInSyncBlock || Missing(threads_[0]) != nullptr) return false;
  for (Thread& thread : threads_) thread.state = State::kReady;
  return true;
}

bool Machine::ReleaseWarp(std::size_t first) {
  const std::size_t end = std::min(threads_.size(), first + kWarp);
  std::size_t waiting = first;
  while (waiting < end && threads_[waiting].state == State::kReturned) ++waiting;
  if (waiting == end || threads_[waiting].state != State::kInExchange ||
      Missing(threads_[waiting]) != nullptr) {
    return false;
  }
  if (const WarpWork work = threads_[waiting].work) {
    std::array<void*, kWarp> lanes{};
    for (std::size_t i = first; i < end; ++i) lanes[i - first] = threads_[i].own;
    work(lanes.data());
  }
  for (std::size_t i = first; i < end; ++i) {
    Thread& thread = threads_[i];
    if (thread.state == State::kReturned) continue;
    thread.state = State::kReady;
    const std::size_t source = first + thread.source;
    thread.received = source < end ? threads_[source].offered : kPoison;
    thread.work = nullptr;
  }
  return true;
}

void Machine::RunWarp(std::size_t first, bool descending) {
  lanes_.clear();
  next_ = 0;
  const std::size_t end = std::min(threads_.size(), first + kWarp);
  for (std::size_t i = first; i < end; ++i) lanes_.push_back(&threads_[i]);
  if (descending) std::ranges::reverse(lanes_);
  do {
    for (const Thread* thread : lanes_) {
      if (thread->state != State::kReady) continue;
      Continue(thread->fiber == nullptr ? IdleFiber() : *thread->fiber);
    }
  } while (ReleaseWarp(first));
}

void Machine::RunBlock(bool descending) {
  for (Thread& thread : threads_) {
    thread.state = State::kReady;
    thread.fiber = nullptr;
    thread.copies.clear();
    thread.copy_groups.clear();
  }
  const std::size_t warps = (threads_.size() + kWarp - 1) / kWarp;
  do {
    for (std::size_t i = 0; i < warps; ++i) {
      RunWarp((descending ? warps - 1 - i : i) * kWarp, descending);
    }
    descending = !descending;
  } while (ReleaseBlock());
  for (const Thread& thread : threads_) {
    if (thread.state == State::kReturned) continue;
    throw std::runtime_error("emulated kernel, block " + Text(blockIdx) + ": " + Describe(thread) +
                             ", but " + Describe(*Missing(thread)));
  }
}

void Machine::Cancel() {
  cancelled_ = true;
  for (const Thread& thread : threads_) {
    if (Waits(thread)) Continue(*thread.fiber);
  }
  cancelled_ = false;
  error_ = nullptr;
}

void Machine::Run(dim3 grid, dim3 block, const std::function<void()>& kernel) {
  const std::size_t count = std::size_t{block.x} * block.y * block.z;
  if (count == 0 || count > 1024 || block.z > 64 || std::size_t{grid.x} * grid.y * grid.z == 0 ||
      grid.y > 65535 || grid.z > 65535) {
    throw std::runtime_error("emulated kernel: no such launch on a GPU: grid " +
                             Text({grid.x, grid.y, grid.z}) + ", block " +
                             Text({block.x, block.y, block.z}));
  }
  const std::lock_guard lock(mutex_);
  SharedMemory shared_memory;
  kernel_ = &kernel;
  gridDim = grid;
  blockDim = block;
  threads_.assign(count, {});
  for (std::size_t i = 0; i < count; ++i) {
    const auto linear = static_cast<unsigned>(i);
    threads_[i].index = {linear % block.x, linear / block.x % block.y, linear / block.x / block.y};
  }
  try {
    bool descending = false;
    for (unsigned z = 0; z < grid.z; ++z) {
      for (unsigned y = 0; y < grid.y; ++y) {
        for (unsigned x = 0; x < grid.x; ++x) {
          blockIdx = {x, y, z};
          shared_memory.Poison();
          RunBlock(descending);
          descending = !descending;
        }
      }
    }
  } catch (...) {
    Cancel();
    throw;
  }
}

Machine& TheMachine() {
  static Machine machine;
  return machine;
}

}  // namespace

void Run(dim3 grid, dim3 block, const std::function<void()>& thread) {
  TheMachine().Run(grid, block, thread);
}

void SyncBlock(Place place) { TheMachine().Wait(State::kInSyncBlock, place); }

std::uint64_t Exchange(unsigned mask, std::uint64_t value, unsigned source, Place place) {
  if (mask != ~0U) {
    throw std::runtime_error(std::string("emulated kernel: a mask of part of a warp at ") +
                             place.file + ":" + std::to_string(place.line) +
                             ": the emulator knows whole warps only");
  }
  Thread& self = TheMachine().current();
  self.offered = value;
  self.source = source;
  TheMachine().Wait(State::kInExchange, place);
  return self.received;
}

void Together(void* own, WarpWork work, Place place) {
  Thread& self = TheMachine().current();
  if (blockDim.x * blockDim.y * blockDim.z % kWarp != 0) {
    throw std::runtime_error(std::string("emulated kernel: an instruction of a warp at ") +
                             place.file + ":" + std::to_string(place.line) +
                             " in a block that is not of whole warps");
  }
  self.own = own;
  self.work = work;
  self.source = Lane();
  TheMachine().Wait(State::kInExchange, place);
}

void StartCopy(void* to, const void* from, Place place) {
  if ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) %
          kCopyBytes !=
      0) {
    throw std::runtime_error(std::string("emulated kernel: a copy that is not aligned at ") +
                             place.file + ":" + std::to_string(place.line));
  }
  std::memset(to, 0xFF, kCopyBytes);
  TheMachine().current().copies.push_back({to, from, place});
}

void EndCopyGroup() {
  Thread& self = TheMachine().current();
  const auto& groups = self.copy_groups;
  const std::size_t before = std::accumulate(groups.begin(), groups.end(), std::size_t{0});
  self.copy_groups.push_back(self.copies.size() - before);
}

void WaitForCopiesBut(std::size_t groups) {
  Thread& self = TheMachine().current();
  std::size_t count = 0;
  for (; self.copy_groups.size() > groups; self.copy_groups.pop_front()) {
    count += self.copy_groups.front();
  }
  const auto end = self.copies.begin() + static_cast<std::ptrdiff_t>(count);
  for (auto copy = self.copies.begin(); copy != end; ++copy) {
    const auto* bytes = static_cast<const std::uint8_t*>(copy->to);
    if (std::any_of(bytes, bytes + kCopyBytes, [](std::uint8_t byte) { return byte != 0xFF; })) {
      throw std::runtime_error(std::string("emulated kernel: shared memory was written to while ") +
                               "the copy of " + copy->place.file + ":" +
                               std::to_string(copy->place.line) + " to it was under way");
    }
    std::memcpy(copy->to, copy->from, kCopyBytes);
  }
  self.copies.erase(self.copies.begin(), end);
}

void WaitForCopies() {
  EndCopyGroup();
  WaitForCopiesBut(0);
}

unsigned Lane() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % kWarp;
}

}  // namespace cuda_emulator
