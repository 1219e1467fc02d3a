// SPDX-License-Identifier: Apache-2.0
//
// Records of one set, kept on this node by all processes of a user that read it, so that a record
// is read once from where the set lies: doc/decisions/0042-node-local-record-cache.md.
//
// In a private directory each set has one sparse file, which holds its files one behind the other,
// each record in its place.  There is no table of what is there: a record is, if the bytes in its
// place have its length and both of its checksums.  So whatever happens to the file (a kill while
// it is written, a crash of the machine, a bad disk), nothing but whole records comes out of it;
// any other is read from the set.  Each state of a set has a file of its own, whose name has a
// fingerprint of the names and FileIdentity of all files.
//
// What fits is kept, and nothing gives way to another: in each epoch every record is wanted once.
//
// Threads: Fetch, Keep and use from any number of threads.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/files/scan_cache.h"
#include "trainer/data/files/tfrecord.h"

namespace trainer {

struct RecordCacheOptions {
  std::string dir;              // scan_cache.h; "": nothing is kept
  std::uint64_t max_bytes = 0;  // of all that is in it; 0: half of what is free or is in it
  // A set with a file that was changed less than this before is not kept: another change may have
  // the same time.
  std::chrono::nanoseconds settled = std::chrono::seconds(2);
  // How long to wait for a process that is removing the file of the set.
  std::chrono::milliseconds timeout = std::chrono::seconds(5);
};

struct RecordCacheUse {
  std::string path;             // of the file; "": the set is not kept
  std::uint64_t set_bytes = 0;  // of all records
  std::uint64_t bytes = 0;      // of these, that are there, by all processes
  std::uint64_t max_bytes = 0;  // of all sets together
  std::int64_t hits = 0;        // records that this process found there
  std::int64_t misses = 0;      // and did not
  std::string note;             // why no more is kept; "" if more is
};

class RecordCache {
 public:
  // `set` names the directory of `files` among all, `part` which of its files these are.  Files
  // that nobody has open are removed: those of other states of them, and of other sets, the oldest
  // first, until there is room for all of these.
  // Throws Error(EX_OSERR) that names what cannot be used.
  RecordCache(std::span<const RecordFile> files, const std::string& set, const std::string& part,
              const RecordCacheOptions& options);

  // Whether the record at `place` of file number `file` is there; fills `bytes`, place.size of
  // them, with it if so, and with anything otherwise.
  bool Fetch(std::size_t file, const RecordPlace& place, std::span<std::uint8_t> bytes);
  // Keeps it if it is whole and there is room, of which it may take a few records more.  What goes
  // wrong is noted, and no more is kept.
  void Keep(std::size_t file, const RecordPlace& place, std::span<const std::uint8_t> bytes);

  RecordCacheUse use() const;

 private:
  struct Other {
    std::filesystem::file_time_type time;
    std::filesystem::path path;
    std::uint64_t bytes = 0;
  };

  bool OpenFile(const std::string& name, std::chrono::milliseconds timeout);
  void RemoveOthers(const std::string& set_prefix, const std::string& part_prefix);
  std::vector<Other> FindOthers() const;
  std::uint64_t BytesOfOthers() const;
  std::uint64_t OwnBytes() const;
  std::uint64_t SetBytes() const { return first_byte_.back(); }
  bool HasCapacity(std::uint64_t bytes);
  void StopKeeping(const std::string& why);

  const PrivateDirectory directory_;
  std::vector<std::uint64_t> first_byte_;  // of each file in file_, and the total at the end
  support::Descriptor file_;               // with a shared lock; empty: the set is not kept
  std::filesystem::path path_;             // of it
  std::uint64_t max_bytes_;
  std::atomic<std::uint64_t> bytes_of_others_ = 0;
  std::atomic<std::uint64_t> polls_for_memory_ = 0;
  std::atomic<std::int64_t> hits_ = 0;
  std::atomic<std::int64_t> misses_ = 0;
  std::atomic<bool> is_keeping_ = true;
  mutable std::mutex mutex_;  // guards note_
  std::string note_;
};

}  // namespace trainer
