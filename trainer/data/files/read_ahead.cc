// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/read_ahead.h"

#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/core/thread.h"

namespace trainer {
namespace {

// A sixteenth of the ring, 1 MiB for each decoding thread, stays in its caches.
constexpr std::size_t kCachedShare = 16;

// How often this thread has slept.  Reading from memory does not sleep, however long it takes on a
// busy machine, and waiting for a disk or a server does (getrusage(2): ru_nvcsw).
long SleepsOfThisThread() {
  rusage use{};
  ::getrusage(RUSAGE_THREAD, &use);
  return use.ru_nvcsw;
}

}  // namespace

std::span<const std::uint8_t> ReadAhead::Taken::bytes() const {
  // Nobody else touches the place between Take and Release.
  const Place& place = std::as_const(ring_).PlaceOf(item_);
  if (place.failure) std::rethrow_exception(place.failure);
  return place.bytes;
}

ReadAhead::ReadAhead(const Options& options, Storage storage)
    : options_(options),
      storage_(std::move(storage)),
      memory_(std::make_unique_for_overwrite<std::uint8_t[]>(options.bytes)),
      places_(static_cast<std::size_t>(options.items)) {
  DDL_CHECK(options.max_threads > 0 && options.items > 0 && options.bytes > 0);
  Reset(0);
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
}

ReadAhead::Taken ReadAhead::Take(std::int64_t item) {
  std::unique_lock lock(mutex_);
  DDL_CHECK(item >= oldest_ && item < options_.end);
  while (!IsThere(item)) {
    if (MayRead(item)) {
      const bool has_slept = ReadNext(lock);
      if (has_slept) GetHelp();
      continue;
    }
    if (!threads_.empty()) GetHelp();
    ++waiting_;
    there_.wait(lock, [&] { return IsThere(item) || MayRead(item); });
    --waiting_;
  }
  return {*this, item};
}

// Of a thread that sleeps, or of another one if all are at work.
void ReadAhead::GetHelp() {
  if (!HasCapacity()) return;
  if (idle_ > 0) {
    room_.notify_one();
  } else if (may_grow_) {
    try {
      AddThread();
    } catch (const Error&) {
      may_grow_ = false;  // those there are do it all
    }
  }
}

void ReadAhead::Seek(std::int64_t item, const std::function<void()>& at_rest) {
  std::unique_lock lock(mutex_);
  paused_ = true;
  ++waiting_;
  there_.wait(lock, [this] { return reading_ == 0; });
  --waiting_;
  at_rest();
  Reset(item);
  paused_ = false;
  room_.notify_one();
}

int ReadAhead::threads() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(threads_.size());
}

void ReadAhead::AddThread() {
  const std::size_t number = threads_.size() + 1;
  threads_.push_back(StartThread("reading thread " + std::to_string(number), [this] { Work(); }));
  ++idle_;
  may_grow_ = static_cast<int>(number) < options_.max_threads;
}

void ReadAhead::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    room_.wait(lock, [this] { return stopping_ || HasCapacity(); });
    if (stopping_) return;
    --idle_;
    ReadNext(lock);
    ++idle_;
  }
}

bool ReadAhead::ReadNext(std::unique_lock<std::mutex>& lock) {
  const std::int64_t item = next_;
  Place& place = ClaimNext();
  ++reading_;
  std::exception_ptr failure;
  lock.unlock();
  const long sleeps = SleepsOfThisThread();
  try {
    Fetch(item, place);
  } catch (...) {
    failure = std::current_exception();
  }
  const bool has_slept = SleepsOfThisThread() > sleeps;
  lock.lock();
  --reading_;
  place.failure = std::move(failure);
  place.is_there = true;
  if (waiting_ > 0) there_.notify_all();
  return has_slept;
}

void ReadAhead::Fetch(std::int64_t item, Place& place) const {
  if (place.bytes.size() > options_.bytes) {
    place.own = std::make_unique_for_overwrite<std::uint8_t[]>(place.bytes.size());
    place.bytes = {place.own.get(), place.bytes.size()};
  }
  if (!place.bytes.empty()) storage_.read(item, place.bytes);
}

void ReadAhead::Release(std::int64_t item) {
  const std::lock_guard lock(mutex_);
  Place& released = PlaceOf(item);
  released.own.reset();
  released.failure = nullptr;
  released.is_free = true;
  while (oldest_ < next_ && PlaceOf(oldest_).is_free) FreeOldest();
  if (waiting_ == 0 && (idle_ == 0 || !IsHalfFree())) return;
  if (!HasCapacity()) return;
  if (waiting_ > 0) there_.notify_all();
  if (idle_ > 0) room_.notify_one();
}

void ReadAhead::Reset(std::int64_t item) {
  while (oldest_ < next_) FreeOldest();
  oldest_ = next_ = item;
  SizeUpNext();
}

void ReadAhead::SizeUpNext() {
  if (next_ < options_.end) next_bytes_ = storage_.size(next_);
}

ReadAhead::Place& ReadAhead::ClaimNext() {
  const std::size_t begin = *CanQueueNext();
  if (oldest_ < next_ && begin < PlaceOf(next_ - 1).begin) is_wrapped_ = true;
  Place& place = PlaceOf(next_);
  place = {};
  place.begin = begin;
  place.size = next_bytes_ > options_.bytes ? 0 : next_bytes_;
  place.bytes = {memory_.get() + begin, next_bytes_};
  held_bytes_ += place.size;
  ++next_;
  SizeUpNext();
  return place;
}

void ReadAhead::FreeOldest() {
  Place& place = PlaceOf(oldest_);
  const std::size_t begin = place.begin;
  held_bytes_ -= place.size;
  place = {};
  ++oldest_;
  if (oldest_ == next_ || PlaceOf(oldest_).begin < begin) is_wrapped_ = false;
}

bool ReadAhead::IsThere(std::int64_t item) const { return item < next_ && PlaceOf(item).is_there; }

bool ReadAhead::IsHalfFree() const {
  return 2 * (next_ - oldest_) <= options_.items && 2 * held_bytes_ <= options_.bytes;
}

// An item lies in one piece, behind the one before it.  It goes to the start of memory_ where it
// has no room before the end, and as soon as it can while little is held: memory that was written
// a moment ago is still in the caches.
std::optional<std::size_t> ReadAhead::CanQueueNext() const {
  if (oldest_ == next_) return 0;
  if (next_ - oldest_ == options_.items) return std::nullopt;
  const std::size_t first = PlaceOf(oldest_).begin;
  const std::size_t end = PlaceOf(next_ - 1).begin + PlaceOf(next_ - 1).size;
  if (is_wrapped_) return end + next_bytes_ <= first ? std::optional(end) : std::nullopt;
  const std::size_t few = options_.bytes / kCachedShare;
  const bool is_far = end + next_bytes_ > options_.bytes;
  const bool would_rather_wrap = is_far || (end >= few && held_bytes_ + next_bytes_ <= few);
  if (would_rather_wrap && next_bytes_ <= first) return 0;
  return is_far ? std::nullopt : std::optional(end);
}

ReadAhead::Options ReadAheadFor(int workers, std::int64_t end) {
  constexpr int kMaxServed = 16;
  constexpr int kReadersAtMost = 512;
  constexpr int kThreads = 64;
  constexpr std::int64_t kItems = 128;
  constexpr std::size_t kBytes = 16u << 20;
  const int served = std::min(workers, kMaxServed);
  return {.max_threads = std::min(served * kThreads, kReadersAtMost),
          .items = served * kItems,
          .bytes = static_cast<std::size_t>(served) * kBytes,
          .end = end};
}

}  // namespace trainer
