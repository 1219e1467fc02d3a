// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/read_ahead.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/core/thread.h"

namespace trainer {

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
  DDL_CHECK(options.most_threads > 0 && options.items > 0 && options.bytes > 0);
  const std::lock_guard lock(mutex_);
  Reset(0);
  AddThread();
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
  if (!IsThere(item) && HasRoom()) {
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
  ++waiting_;
  there_.wait(lock, [&] { return IsThere(item); });
  --waiting_;
  return {*this, item};
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
  may_grow_ = static_cast<int>(number) < options_.most_threads;
}

void ReadAhead::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    room_.wait(lock, [this] { return stopping_ || HasRoom(); });
    if (stopping_) return;
    const std::int64_t item = next_;
    Place& place = ClaimNext();
    --idle_;
    ++reading_;
    std::exception_ptr failure;
    lock.unlock();
    try {
      Fetch(item, place);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    ++idle_;
    --reading_;
    place.failure = std::move(failure);
    place.is_there = true;
    if (waiting_ > 0) there_.notify_all();
  }
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
  while (oldest_ < next_ && PlaceOf(oldest_).is_free) ++oldest_;
  if (oldest_ == next_) position_ = 0;
  if (idle_ > 0 && (waiting_ > 0 || IsHalfFree()) && HasRoom()) room_.notify_one();
}

void ReadAhead::Reset(std::int64_t item) {
  for (; oldest_ < next_; ++oldest_) PlaceOf(oldest_) = {};
  oldest_ = next_ = item;
  position_ = 0;
  SizeUpNext();
}

void ReadAhead::SizeUpNext() {
  if (next_ < options_.end) next_bytes_ = storage_.size(next_);
}

ReadAhead::Place& ReadAhead::ClaimNext() {
  Place& place = PlaceOf(next_);
  place = {};
  place.position = *RoomForNext();
  place.bytes = {memory_.get() + place.position % options_.bytes, next_bytes_};
  position_ = place.position + (next_bytes_ > options_.bytes ? 0 : next_bytes_);
  ++next_;
  SizeUpNext();
  return place;
}

bool ReadAhead::IsThere(std::int64_t item) const { return item < next_ && PlaceOf(item).is_there; }

bool ReadAhead::IsHalfFree() const {
  return 2 * (next_ - oldest_) <= options_.items &&
         2 * (position_ - FirstHeldPosition()) <= options_.bytes;
}

std::uint64_t ReadAhead::FirstHeldPosition() const {
  return oldest_ == next_ ? position_ : PlaceOf(oldest_).position;
}

// An item lies in one piece: what does not fit before the end of memory_ begins at its start.
std::optional<std::uint64_t> ReadAhead::RoomForNext() const {
  if (oldest_ == next_) return position_;
  if (next_ - oldest_ == options_.items) return std::nullopt;
  const std::uint64_t left = options_.bytes - position_ % options_.bytes;
  const std::uint64_t position = next_bytes_ > left ? position_ + left : position_;
  if (position + next_bytes_ > FirstHeldPosition() + options_.bytes) return std::nullopt;
  return position;
}

ReadAhead::Options ReadAheadFor(int workers, std::int64_t end) {
  constexpr int kMostServed = 16;
  constexpr int kMostThreads = 512;
  constexpr int kThreads = 64;
  constexpr std::int64_t kItems = 128;
  constexpr std::size_t kBytes = 16u << 20;
  const int served = std::min(workers, kMostServed);
  return {.most_threads = std::min(served * kThreads, kMostThreads),
          .items = served * kItems,
          .bytes = static_cast<std::size_t>(served) * kBytes,
          .end = end};
}

}  // namespace trainer
