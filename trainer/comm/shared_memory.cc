// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/shared_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "support/descriptor.h"
#include "trainer/comm/serial_executor.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

class SharedMemoryCommunicator : public Communicator {
 public:
  explicit SharedMemoryCommunicator(const CommOptions& options)
      : rank_(options.rank), size_(options.size), spans_(options.spans) {
    // In the worker: the mutex that says "alive" belongs to a thread, and this one lives as long as
    // the communicator.
    worker_.PostAndWait([&] { region_.emplace(options); });
  }
  ~SharedMemoryCommunicator() override {
    try {
      worker_.PostAndWait([this] { region_->Leave(); });
    } catch (const Error&) {
      // An earlier call failed and its Error was thrown: the others are to see this rank as dead.
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string description() const override {
    return "shared memory, " + std::to_string(size_) + " ranks";
  }

  void StartAllReduce(void* data, std::size_t count, DType dtype, Reduction reduction,
                      Stream& producer) override {
    DDL_CHECK(dtype == DType::kFloat32 && reduction == Reduction::kSum);
    producer.Synchronize();
    worker_.Post([this, data, count] {
      const SpanOfScope span(spans_, SpanKind::kAllReduce, 0,
                             static_cast<std::int64_t>(count * sizeof(float)));
      AllReduce(static_cast<float*>(data), count, [](float a, float b) { return a + b; });
    });
  }
  void Finish(Stream&) override { worker_.Wait(); }

  void AllReduceSum(std::span<double> values) override {
    worker_.PostAndWait([this, values] {
      AllReduce(values.data(), values.size(), [](double a, double b) { return a + b; });
    });
  }
  void AllReduceMax(std::span<double> values) override {
    worker_.PostAndWait([this, values] {
      AllReduce(values.data(), values.size(), [](double a, double b) { return std::max(a, b); });
    });
  }
  void Broadcast(void* data, std::size_t bytes, int root) override {
    DDL_CHECK(root >= 0 && root < size_);
    worker_.PostAndWait(
        [this, data, bytes, root] { BroadcastChunks(static_cast<std::byte*>(data), bytes, root); });
  }
  void Barrier() override {
    worker_.PostAndWait([this] { region_->Barrier(); });
  }

  void Abort(int exit_code) override {
    region_->AnnounceAbort(exit_code);
    ::_exit(exit_code);
  }

 private:
  // In chunks of a slot: every rank copies its values into its slot; each adds up one section of
  // all slots, in the order of the ranks, into the result; every rank copies the whole result back.
  // The next chunk's slots are written after all have read this one's (second barrier), and its
  // result after all have copied this one's (they do so before they come to the next first
  // barrier).
  template <typename T, typename Operation>
  void AllReduce(T* data, std::size_t count, Operation operation) {
    constexpr std::size_t kChunk = SharedRegion::kSlotBytes / sizeof(T);
    for (std::size_t done = 0; done < count; done += kChunk) {
      const std::size_t length = std::min(kChunk, count - done);
      std::memcpy(region_->slot(rank_), data + done, length * sizeof(T));
      region_->Barrier();
      ReduceSection<T>(length, operation);
      region_->Barrier();
      std::memcpy(data + done, region_->result(), length * sizeof(T));
    }
  }

  template <typename T, typename Operation>
  void ReduceSection(std::size_t length, Operation operation) {
    const auto bound = [&](int rank) {
      return length * static_cast<std::size_t>(rank) / static_cast<std::size_t>(size_);
    };
    const std::size_t begin = bound(rank_);
    const std::size_t end = bound(rank_ + 1);
    T* result = reinterpret_cast<T*>(region_->result());
    const T* first = reinterpret_cast<const T*>(region_->slot(0));
    std::copy(first + begin, first + end, result + begin);
    for (int rank = 1; rank < size_; ++rank) {
      const T* source = reinterpret_cast<const T*>(region_->slot(rank));
      for (std::size_t i = begin; i < end; ++i) result[i] = operation(result[i], source[i]);
    }
  }

  void BroadcastChunks(std::byte* data, std::size_t bytes, int root) {
    for (std::size_t done = 0; done < bytes; done += SharedRegion::kSlotBytes) {
      const std::size_t length = std::min(SharedRegion::kSlotBytes, bytes - done);
      if (rank_ == root) std::memcpy(region_->slot(root), data + done, length);
      region_->Barrier();
      if (rank_ != root) std::memcpy(data + done, region_->slot(root), length);
      region_->Barrier();
    }
  }

  int rank_;
  int size_;
  SpanRecorder* spans_;
  std::optional<SharedRegion> region_;
  OrderedWorker worker_;  // ends before the region is unmapped
};

}  // namespace

std::unique_ptr<Communicator> MakeSharedMemoryCommunicator(const CommOptions& options) {
  return std::make_unique<SharedMemoryCommunicator>(options);
}

struct SharedPeer {
  pthread_mutex_t alive;
  std::atomic<std::int32_t> pid;     // 0 until it has joined
  std::atomic<std::uint32_t> round;  // barriers it has reached
};

struct SharedHeader {
  std::atomic<std::uint32_t> ready;     // kReady once rank 0 has filled in the rest
  std::uint32_t size;                   // ranks
  std::atomic<std::uint32_t> joined;    // ranks that have mapped the file
  std::atomic<std::uint32_t> arrivals;  // over all barriers, modulo 2^32; a futex
  std::atomic<std::int32_t> aborted;    // rank + 1 of the one that aborted, or 0
  std::atomic<std::int32_t> abort_code;
  SharedPeer peers[kMaxLocalRanks];
};

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint32_t kReady = 0xdd1a110c;
constexpr std::size_t kHeaderBytes = std::size_t{64} << 10;
constexpr auto kPoll = std::chrono::milliseconds(5);
constexpr auto kCheckInterval = std::chrono::milliseconds(200);
constexpr int kSpins = 2000;  // some microseconds: what a barrier between running ranks takes

static_assert(sizeof(SharedHeader) <= kHeaderBytes);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "shared between processes");

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t expected) {
  constexpr auto kNanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(kCheckInterval).count();
  const timespec timeout{0, kNanoseconds};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

void FutexWakeAll(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

void InitializeAliveMutex(pthread_mutex_t* mutex) {
  pthread_mutexattr_t attributes;
  DDL_CHECK(pthread_mutexattr_init(&attributes) == 0);
  DDL_CHECK(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0);
  DDL_CHECK(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
  DDL_CHECK(pthread_mutex_init(mutex, &attributes) == 0);
  pthread_mutexattr_destroy(&attributes);
}

enum class PeerState { kAlive, kLeft, kDead };

PeerState StateOf(SharedPeer& peer) {
  switch (pthread_mutex_trylock(&peer.alive)) {
    case EBUSY:
      return PeerState::kAlive;
    case 0:
      pthread_mutex_unlock(&peer.alive);
      return PeerState::kLeft;
    case EOWNERDEAD:
      pthread_mutex_unlock(&peer.alive);  // from now on ENOTRECOVERABLE, for all who ask
      return PeerState::kDead;
    default:
      return PeerState::kDead;
  }
}

// Removes the name on the way out, whether or not the ranks have met.
class UnlinkAtEnd {
 public:
  explicit UnlinkAtEnd(std::string path) : path_(std::move(path)) {}
  ~UnlinkAtEnd() { ::unlink(path_.c_str()); }
  UnlinkAtEnd(const UnlinkAtEnd&) = delete;
  UnlinkAtEnd& operator=(const UnlinkAtEnd&) = delete;

 private:
  std::string path_;
};

// The rank that aborts knows the cause: it shall be the first to end.
void WaitUntilGone(pid_t pid) {
  constexpr std::chrono::seconds kTimeout{2};
  if (pid == getpid()) return;  // a rank that is another thread
  const auto end = std::chrono::steady_clock::now() + kTimeout;
  while (kill(pid, 0) == 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace

SharedRegion::SharedRegion(const CommOptions& options) : options_(options) {
  DDL_CHECK(options.size >= 1 && options.size <= kMaxLocalRanks);
  DDL_CHECK(options.rank >= 0 && options.rank < options.size);
  const std::string path =
      options.run_dir + "/ranks-" + std::to_string(options.restart_count) + ".shm";
  const std::size_t bytes =
      kHeaderBytes + (static_cast<std::size_t>(options.size) + 1) * kSlotBytes;
  std::unique_ptr<UnlinkAtEnd> unlink;
  try {
    if (options.rank == 0) {
      Create(path, bytes);
      unlink = std::make_unique<UnlinkAtEnd>(path);
    } else {
      Open(path, bytes);
    }
    Join();
  } catch (...) {
    if (header_ != nullptr) ::munmap(header_, bytes_);
    throw;
  }
}

SharedRegion::~SharedRegion() { ::munmap(header_, bytes_); }

void SharedRegion::Map(int fd, std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) throw OsError("cannot map the memory shared by the ranks", errno);
  bytes_ = bytes;
  header_ = static_cast<SharedHeader*>(memory);
  slots_ = static_cast<std::byte*>(memory) + kHeaderBytes;
}

void SharedRegion::Create(const std::string& path, std::size_t bytes) {
  const support::Descriptor file(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) throw OsError("cannot create " + path + " for the ranks to meet in", errno);
  // Takes the space now: a full file system found later would be a SIGBUS.
  if (const int error = ::posix_fallocate(file.fd(), 0, static_cast<off_t>(bytes)); error != 0) {
    ::unlink(path.c_str());
    throw OsError("cannot take " + std::to_string(bytes >> 20) + " MiB for " + path, error);
  }
  Map(file.fd(), bytes);
  new (header_) SharedHeader();
  header_->size = static_cast<std::uint32_t>(options_.size);
  for (int rank = 0; rank < options_.size; ++rank)
    InitializeAliveMutex(&header_->peers[rank].alive);
  header_->ready.store(kReady);
}

void SharedRegion::Open(const std::string& path, std::size_t bytes) {
  const auto start = Clock::now();
  for (;; std::this_thread::sleep_for(kPoll)) {
    if (SecondsSince(start) > options_.rendezvous_seconds) {
      throw Error(EX_UNAVAILABLE, "rank 0 did not appear within " +
                                      std::to_string(options_.rendezvous_seconds) +
                                      " seconds: there is no " + path + " for " +
                                      std::to_string(options_.size) + " ranks");
    }
    const support::Descriptor file(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    if (!file.is_open() && errno == ENOENT) continue;
    if (!file.is_open()) throw OsError("cannot open " + path, errno);
    struct stat status {};
    if (::fstat(file.fd(), &status) != 0) throw OsError("cannot read " + path, errno);
    if (status.st_uid != ::geteuid()) {
      throw Error(EX_CONFIG, path + " belongs to another user; give a private run directory");
    }
    if (static_cast<std::size_t>(status.st_size) < bytes) continue;  // still growing
    Map(file.fd(), bytes);
    break;
  }
  while (header_->ready.load() != kReady) {
    if (SecondsSince(start) > options_.rendezvous_seconds) {
      throw Error(EX_UNAVAILABLE, "rank 0 did not finish " + path);
    }
    std::this_thread::sleep_for(kPoll);
  }
  if (header_->size != static_cast<std::uint32_t>(options_.size)) {
    throw Error(EX_CONFIG, "rank " + std::to_string(options_.rank) + "has a world of " +
                               std::to_string(options_.size) + " ranks, rank 0 of " +
                               std::to_string(header_->size) +
                               "; start all of them with one ddlrun command");
  }
}

void SharedRegion::Join() {
  SharedPeer& me = header_->peers[options_.rank];
  if (pthread_mutex_trylock(&me.alive) != 0) {
    throw Error(EX_CONFIG, "two processes say that they are rank " + std::to_string(options_.rank) +
                               "; start all ranks with one ddlrun command");
  }
  me.pid.store(::getpid());
  header_->joined.fetch_add(1);
  const auto start = Clock::now();
  while (header_->joined.load() < header_->size) {
    CheckPeers("for the ranks to meet");
    if (SecondsSince(start) > options_.rendezvous_seconds) {
      std::string absent;
      for (int rank = 0; rank < options_.size; ++rank) {
        if (header_->peers[rank].pid.load() == 0) absent += " " + std::to_string(rank);
      }
      throw Error(EX_UNAVAILABLE, "these ranks did not appear within " +
                                      std::to_string(options_.rendezvous_seconds) +
                                      " seconds:" + absent);
    }
    std::this_thread::sleep_for(kPoll);
  }
}

void SharedRegion::CheckPeers(const std::string& waiting_for) const {
  const auto fail = [&](int rank, const std::string& what) {
    throw Error(EX_UNAVAILABLE, "rank " + std::to_string(rank) + " (process " +
                                    std::to_string(header_->peers[rank].pid.load()) + ") " + what +
                                    " while rank " + std::to_string(options_.rank) + " waited " +
                                    waiting_for + "; its own last lines say why");
  };
  if (const int aborted = header_->aborted.load(); aborted != 0) {
    WaitUntilGone(header_->peers[aborted - 1].pid.load());
    fail(aborted - 1, "ended the job with exit code " + std::to_string(header_->abort_code.load()));
  }
  for (int rank = 0; rank < options_.size; ++rank) {
    SharedPeer& peer = header_->peers[rank];
    // Who has not joined yet is no peer; who has reached this barrier may have died since, and will
    // be missed at the next.
    if (rank == options_.rank || peer.pid.load() == 0) continue;
    if (round_ != 0 && static_cast<std::int32_t>(peer.round.load() - round_) >= 0) continue;
    const PeerState state = StateOf(peer);
    if (state == PeerState::kDead) fail(rank, "died");
    // While ranks still meet, who has left did so after all had met, which is about to be seen.
    if (state == PeerState::kLeft && round_ != 0) fail(rank, "left");
  }
}

std::string SharedRegion::Missing() const {
  std::string missing;
  for (int rank = 0; rank < options_.size; ++rank) {
    const std::uint32_t reached = header_->peers[rank].round.load();
    if (static_cast<std::int32_t>(reached - round_) < 0) missing += " " + std::to_string(rank);
  }
  return missing;
}

void SharedRegion::Barrier() {
  ++round_;
  const std::uint32_t target = round_ * header_->size;
  header_->peers[options_.rank].round.store(round_);
  if (header_->arrivals.fetch_add(1) + 1 == target) {
    FutexWakeAll(header_->arrivals);
    return;
  }
  const auto arrived = [&](std::uint32_t arrivals) {
    return static_cast<std::int32_t>(arrivals - target) >= 0;
  };
  for (int spin = 0; spin < kSpins; ++spin) {
    if (arrived(header_->arrivals.load())) return;
  }
  const auto start = Clock::now();
  for (;;) {
    const std::uint32_t arrivals = header_->arrivals.load();
    if (arrived(arrivals)) return;
    FutexWait(header_->arrivals, arrivals);
    if (arrived(header_->arrivals.load())) return;
    CheckPeers("for it");
    if (SecondsSince(start) > options_.stall_seconds) {
      throw Error(EX_UNAVAILABLE, "rank " + std::to_string(options_.rank) + " has waited " +
                                      std::to_string(options_.stall_seconds) +
                                      " seconds for these ranks:" + Missing());
    }
  }
}

void SharedRegion::Leave() { pthread_mutex_unlock(&header_->peers[options_.rank].alive); }

void SharedRegion::AnnounceAbort(int exit_code) {
  header_->abort_code.store(exit_code);
  header_->aborted.store(options_.rank + 1);
  FutexWakeAll(header_->arrivals);
}

}  // namespace trainer
