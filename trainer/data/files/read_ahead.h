// SPDX-License-Identifier: Apache-2.0
//
// A ring of items of storage, in the order of their numbers, for those who work on them, so that
// these never wait for a disk or a server (why not io_uring, and who reads: doc/decisions/
// 0029-read-ahead-threads.md, 0048-who-reads-a-record.md).
//
// Who wants an item that nobody has begun to read reads it: from the page cache nothing is
// quicker, since the bytes are then in the cache of the core that works on them.  If such a read
// has to sleep, or somebody waits for an item while all threads are at work, a thread is added that
// reads ahead, until there are max_threads or no more can be had: n threads hide a latency of
// n / (items wanted in a second).  Threads with nothing to do sleep until half of the ring is free,
// or somebody waits.
//
// Memory: Options::bytes, taken once and touched as it is used, and at most one item beside that
// which is larger by itself.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace trainer {

// Threads: Take and the end of what it returned from any thread, Seek from one.
class ReadAhead {
 public:
  struct Options {
    int max_threads = 1;
    std::int64_t items = 1;  // in memory at most, those that are worked on among them
    std::size_t bytes = 1;   // of all of these, but for one that has more by itself
    std::int64_t end = 0;    // the first item that is not read
  };
  struct Storage {
    // Bytes of an item; of 0 nothing is read.  Called with a lock held: quick, and without failure.
    std::function<std::size_t(std::int64_t item)> size;
    // Fills `bytes`, size(item) of them.  Called from several threads at once, earlier items first.
    std::function<void(std::int64_t item, std::span<std::uint8_t> bytes)> read;
  };

  // An item that somebody works on; its memory is free again at the end of this.
  class Taken {
   public:
    Taken(ReadAhead& ring, std::int64_t item) : ring_(ring), item_(item) {}
    ~Taken() { ring_.Release(item_); }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;

    // Throws what the reading of the item threw, at each call.
    std::span<const std::uint8_t> bytes() const;

   private:
    ReadAhead& ring_;
    const std::int64_t item_;
  };

  // Begins with item 0, and without a thread.
  ReadAhead(const Options& options, Storage storage);
  // Waits for reads under way, starts no others.  REQUIRES: nothing is taken.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Reads `item` and those before it that nobody has begun to read, or waits until it has been
  // read, well or not.  REQUIRES: items are taken once each, all of them, and nobody who has taken
  // one waits for a later one.
  Taken Take(std::int64_t item);

  // Goes on with `item`.  What was read ahead is dropped; `at_rest` is called after the last read
  // of that and before anything is asked about `item`.  REQUIRES: nothing is taken.
  void Seek(std::int64_t item, const std::function<void()>& at_rest);

  // That it has by now.
  int threads() const;

 private:
  struct Place {
    std::size_t begin = 0;  // in memory_
    std::size_t size = 0;   // there
    std::span<std::uint8_t> bytes;
    std::unique_ptr<std::uint8_t[]> own;  // of an item that is larger than memory_
    std::exception_ptr failure;
    bool is_there = false;  // has been read
    bool is_free = false;   // was taken, and is no longer
  };

  void GetHelp();
  void AddThread();
  void Work();
  bool ReadNext(std::unique_lock<std::mutex>& lock);  // whether it slept
  void Fetch(std::int64_t item, Place& place) const;
  void Release(std::int64_t item);
  void Reset(std::int64_t item);
  void SizeUpNext();
  Place& ClaimNext();
  void FreeOldest();
  bool IsThere(std::int64_t item) const;
  // That who wants `item` reads: nobody has begun to.
  bool MayRead(std::int64_t item) const { return item >= next_ && HasCapacity(); }
  bool HasCapacity() const {
    return !paused_ && next_ < options_.end && CanQueueNext().has_value();
  }
  bool IsHalfFree() const;
  std::optional<std::size_t> CanQueueNext() const;
  Place& PlaceOf(std::int64_t item) {
    return places_[static_cast<std::size_t>(item) % places_.size()];
  }
  const Place& PlaceOf(std::int64_t item) const {
    return places_[static_cast<std::size_t>(item) % places_.size()];
  }

  const Options options_;
  const Storage storage_;
  const std::unique_ptr<std::uint8_t[]> memory_;

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable room_;
  std::condition_variable there_;  // an item is, or room, or nothing is being read any more
  std::vector<Place> places_;
  std::int64_t oldest_ = 0;     // item that is held; none are if it is next_
  std::int64_t next_ = 0;       // item to be read
  std::size_t next_bytes_ = 0;  // of that
  std::size_t held_bytes_ = 0;  // of memory_
  bool is_wrapped_ = false;     // what is held goes on from the end of memory_ to its start
  int reading_ = 0;             // threads, of whatever kind
  int idle_ = 0;                // threads_
  int waiting_ = 0;             // for an item, for room, or for all reads to end
  bool paused_ = false;
  bool stopping_ = false;
  bool may_grow_ = true;
  std::vector<std::jthread> threads_;  // last: the others must outlive them
};

// For `workers` threads that decode records, up to `end`: for each of them 128 records, 16 MiB
// (about 150 records of ImageNet) and 64 threads, which hide 20 ms at 3,200 records/s; for all
// together no more than 2,048 records, 256 MiB and 512 threads.
ReadAhead::Options ReadAheadFor(int workers, std::int64_t end);

}  // namespace trainer
