// SPDX-License-Identifier: Apache-2.0
//
// Ranks of one machine that meet in a file of the job's private run directory, mapped by all of
// them. The file is created by rank 0 (mode 0600) and unlinked as soon as all have mapped it.
//
// Sums are taken in the order of the ranks, so the bits are the same on every rank and in every
// run. A rank that dies, leaves or aborts while others wait for it is noticed within a second and
// named in the Error(EX_UNAVAILABLE) that the others get.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "trainer/comm/factory.h"

namespace trainer {

// Throws Error as MakeCommunicator does.  REQUIRES: 0 <= rank < size <= kMaxLocalRanks.
std::unique_ptr<Communicator> MakeSharedMemoryCommunicator(const CommOptions& options);

inline constexpr int kMaxLocalRanks = 256;

// Memory that the ranks of one machine share, and the barrier between them.  Inside of
// shared_memory.cc.
//
// Layout of the file: header (who is there, who has arrived), one slot for each rank, the result.
// Each rank holds a robust mutex in the header for as long as it lives: the kernel tells the others
// when its holder dies, whatever it died of.
//
// Threads: everything from one thread, the destructor too or after that thread has ended.

struct SharedHeader;

class SharedRegion {
 public:
  // Bytes of a slot and of the result.
  static constexpr std::size_t kSlotBytes = std::size_t{2} << 20;

  // Rank 0 creates the file, the others wait for it; returns when all have mapped it and it is
  // unlinked.  Throws as MakeSharedMemoryCommunicator does.
  explicit SharedRegion(const CommOptions& options);
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  std::byte* slot(int rank) const { return slots_ + static_cast<std::size_t>(rank) * kSlotBytes; }
  std::byte* result() const { return slot(options_.size); }

  // Returns when all ranks have called it; what they wrote before is then visible.  Throws
  // Error(EX_UNAVAILABLE) that names the rank which died, left or aborted, or did not come in
  // stall_seconds; of one that aborted when its process has ended, or 2 s later.
  void Barrier();

  // Says that this rank leaves in good order.
  void Leave();
  // From any thread: makes every Barrier under way or to come fail on the other ranks.
  void AnnounceAbort(int exit_code);

 private:
  void Create(const std::string& path, std::size_t bytes);
  void Open(const std::string& path, std::size_t bytes);
  void Map(int fd, std::size_t bytes);
  void Join();
  void CheckPeers(const std::string& waiting_for) const;
  std::string Missing() const;

  CommOptions options_;
  SharedHeader* header_ = nullptr;
  std::byte* slots_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint32_t round_ = 0;  // barriers passed, modulo 2^32
};

}  // namespace trainer
