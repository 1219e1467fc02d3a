// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/comm/nccl_emulator/emulated_nccl.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/trainer/backend/cuda_emulator/include/cuda_bf16.h"
#include "tests/trainer/backend/cuda_emulator/include/cuda_fp16.h"

namespace {

constexpr int kPolls = 3;  // until something that was asked for is done
// Before a sum is on its stream: others have time to do what they must not.
constexpr std::chrono::microseconds kLaunchPause{300};

// Where a share lies in what its rank has registered.
constexpr std::size_t kNotRegistered = ~std::size_t{0};

struct Share {
  const void* src = nullptr;
  void* dst = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t operation = ncclSum;
  std::size_t offset = kNotRegistered;
};

struct Sum {
  std::vector<Share> shares;
  int arrived = 0;
  int recorded = 0;  // of those that have arrived
  bool done = false;
};

// The communicators of one unique id.
struct World {
  int size = 0;
  int joined = 0;
  bool broken = false;  // a rank is gone
  bool mixed = false;   // a sum was of a recording, or in registered memory, on some ranks alone
  std::map<std::uint64_t, Sum> sums;
};

struct Emulator {
  std::mutex mutex;  // of everything below, and of all worlds and communicators
  std::condition_variable changed;
  std::map<std::uint64_t, std::shared_ptr<World>> worlds;
  std::uint64_t next_world = 1;
  nccl_emulator::Streams streams;
  ncclResult_t start = ncclSuccess;
  std::string last_error;
  nccl_emulator::Ends ends;
  int max_ctas = 0;
  std::map<void*, std::size_t> allocated;  // by ncclMemAlloc
  std::set<const void*> registered;        // by some communicator
  ncclResult_t registering = ncclSuccess;
  bool null_handles = false;
  nccl_emulator::Summed summed;
};

Emulator& The() {
  // On the heap: what communicators that were aborted have left is still in its lists at the end.
  static auto* const emulator = new Emulator;
  return *emulator;
}

trainer::NcclLibrary& Library() {
  static trainer::NcclLibrary library{.problem = "",
                                      .version = "2.0.0 (emulated)",
                                      .get_unique_id = ncclGetUniqueId,
                                      .comm_init_rank_config = ncclCommInitRankConfig,
                                      .comm_get_async_error = ncclCommGetAsyncError,
                                      .all_reduce = ncclAllReduce,
                                      .comm_finalize = ncclCommFinalize,
                                      .comm_destroy = ncclCommDestroy,
                                      .comm_abort = ncclCommAbort,
                                      .get_error_string = ncclGetErrorString,
                                      .get_last_error = ncclGetLastError,
                                      .mem_alloc = ncclMemAlloc,
                                      .mem_free = ncclMemFree,
                                      .comm_register = ncclCommRegister,
                                      .comm_deregister = ncclCommDeregister};
  return library;
}

float ToFloat(float value) { return value; }
float ToFloat(__half value) { return __half2float(value); }
float ToFloat(__nv_bfloat16 value) { return __bfloat162float(value); }
void Assign(float& dst, float value) { dst = value; }
void Assign(__half& dst, float value) { dst = __float2half_rn(value); }
void Assign(__nv_bfloat16& dst, float value) { dst = __float2bfloat16_rn(value); }

// Rounds to T what it multiplies and adds.
template <typename T>
void AddUp(const std::vector<Share>& shares) {
  const bool mean = shares[0].operation == ncclAvg;
  const float factor = mean ? 1 / static_cast<float>(shares.size()) : 1;
  for (std::size_t i = 0; i < shares[0].count; ++i) {
    T sum{};
    for (const Share& share : shares) {
      T part{};
      Assign(part, ToFloat(static_cast<const T*>(share.src)[i]) * factor);
      Assign(sum, ToFloat(sum) + ToFloat(part));
    }
    for (const Share& share : shares) static_cast<T*>(share.dst)[i] = sum;
  }
}

void AddUpAny(const std::vector<Share>& shares) {
  if (shares[0].type == ncclFloat32) AddUp<float>(shares);
  if (shares[0].type == ncclFloat16) AddUp<__half>(shares);
  if (shares[0].type == ncclBfloat16) AddUp<__nv_bfloat16>(shares);
}

}  // namespace

namespace {

// Of a communicator: what its sums know, on whatever stream and however late.
struct Member {
  std::shared_ptr<World> world;
  int rank = 0;
  std::uint64_t sums = 0;  // begun
  int running = 0;         // of them
  int recordings = 0;      // that have sums
  std::map<const void*, std::size_t> registered = {};
  bool aborted = false;
};

// In what was recorded, for as long as that is there.
class HeldByRecording {
 public:
  explicit HeldByRecording(std::shared_ptr<Member> member) : member_(std::move(member)) {
    const std::lock_guard lock(The().mutex);
    ++member_->recordings;
  }
  ~HeldByRecording() {
    const std::lock_guard lock(The().mutex);
    --member_->recordings;
    The().changed.notify_all();
  }
  HeldByRecording(const HeldByRecording&) = delete;
  HeldByRecording& operator=(const HeldByRecording&) = delete;

 private:
  const std::shared_ptr<Member> member_;
};

std::size_t OffsetOf(const Member& member, const void* data, std::size_t bytes) {
  for (const auto& [begin, size] : member.registered) {
    const std::size_t offset =
        reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(begin);
    if (offset < size && bytes <= size - offset) return offset;
  }
  return kNotRegistered;
}

bool LieAlike(const std::vector<Share>& shares) {
  return std::ranges::all_of(shares,
                             [&](const Share& share) { return share.offset == shares[0].offset; });
}

// What a sum does on its stream.  A graph does it again and again.
void RunSum(const std::shared_ptr<Member>& member, Share share, bool is_recorded) {
  Emulator& the = The();
  std::unique_lock lock(the.mutex);
  if (member->aborted) return;
  World& world = *member->world;
  Sum& sum = world.sums[member->sums++];
  sum.shares.resize(static_cast<std::size_t>(world.size));
  sum.shares[static_cast<std::size_t>(member->rank)] = share;
  sum.recorded += is_recorded ? 1 : 0;
  if (++sum.arrived == world.size) {
    if ((sum.recorded == 0 || sum.recorded == world.size) && LieAlike(sum.shares)) {
      AddUpAny(sum.shares);
      const bool is_registered = share.offset != kNotRegistered;
      (is_registered ? the.summed.registered : the.summed.other) += share.count;
    } else {
      world.mixed = true;
    }
    sum.done = true;
    the.changed.notify_all();
  }
  ++member->running;
  const bool is_caller = the.streams.are_synchronous;
  the.changed.wait(lock,
                   [&] { return sum.done || member->aborted || (is_caller && world.broken); });
  if (!sum.done) {  // its memory is no longer there for the others
    --sum.arrived;
    sum.recorded -= is_recorded ? 1 : 0;
  }
  --member->running;
  the.changed.notify_all();
}

}  // namespace

struct ncclComm {
  std::shared_ptr<Member> member;
  ncclResult_t error = ncclSuccess;
  int polls_left = kPolls;
  std::future<void> launch = {};  // of the last sum, on its stream
  bool finalized = false;

  bool launches() const {
    return launch.valid() && launch.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  }
  bool ready() const { return !launches() && polls_left == 0 && !finalized; }
};

namespace nccl_emulator {

void UseStreams(Streams streams) { The().streams = std::move(streams); }

void StartWith(ncclResult_t result, const std::string& last_error) {
  The().start = result;
  The().last_error = last_error;
}

void SetProblem(const std::string& problem) { Library().problem = problem; }

Ends TakeEnds(int communicators) {
  Emulator& the = The();
  std::unique_lock lock(the.mutex);
  the.changed.wait_for(lock, std::chrono::seconds(10),
                       [&] { return the.ends.destroyed + the.ends.aborted >= communicators; });
  return std::exchange(the.ends, {});
}

int LastMaxCtas() { return The().max_ctas; }

void HaveRegistration(bool have) {
  Library().mem_alloc = have ? ncclMemAlloc : nullptr;
  Library().mem_free = have ? ncclMemFree : nullptr;
  Library().comm_register = have ? ncclCommRegister : nullptr;
  Library().comm_deregister = have ? ncclCommDeregister : nullptr;
}

void RegisterWith(ncclResult_t result, bool null_handle) {
  The().registering = result;
  The().null_handles = null_handle;
}

Summed TakeSummed() {
  const std::lock_guard lock(The().mutex);
  return std::exchange(The().summed, {});
}

int AllocatedPieces() {
  const std::lock_guard lock(The().mutex);
  return static_cast<int>(The().allocated.size());
}

}  // namespace nccl_emulator

namespace trainer {
const NcclLibrary& TheNcclLibrary() { return Library(); }
}  // namespace trainer

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(The().mutex);
  const std::uint64_t world = The().next_world++;
  std::memcpy(id->internal, &world, sizeof world);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  Emulator& the = The();
  const std::lock_guard lock(the.mutex);
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  if (number == 0 || number >= the.next_world) return ncclInvalidArgument;
  std::shared_ptr<World>& world = the.worlds[number];
  if (!world) world = std::make_shared<World>();
  world->size = ranks;
  ++world->joined;
  the.max_ctas = config->maxCTAs;
  auto member = std::make_shared<Member>();
  member->world = world;
  member->rank = rank;
  *comm = new ncclComm{.member = std::move(member), .error = the.start};
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  Emulator& the = The();
  const std::lock_guard lock(the.mutex);
  const World& world = *comm->member->world;
  *state = ncclInProgress;
  if (comm->polls_left > 0) --comm->polls_left;
  if (comm->error != ncclSuccess) {
    *state = comm->error;
  } else if (world.broken) {
    *state = ncclRemoteError;
  } else if (world.mixed) {
    *state = ncclInvalidUsage;
  } else if (world.joined == world.size && comm->polls_left == 0 && !comm->launches()) {
    const Member& member = *comm->member;
    if (!comm->finalized || (member.running == 0 && member.recordings == 0)) *state = ncclSuccess;
  }
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* src, void* dst, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  Emulator& the = The();
  const std::lock_guard lock(the.mutex);
  if (!comm->ready()) return ncclInvalidArgument;
  const std::size_t bytes = count * (type == ncclFloat32 ? 4 : 2);
  const Share share{src, dst, count, type, operation, OffsetOf(*comm->member, dst, bytes)};
  comm->polls_left = kPolls;
  const auto begun = std::make_shared<std::promise<void>>();
  comm->launch = std::async(
      std::launch::async, [streams = the.streams, member = comm->member, share, stream, begun] {
        const bool is_recorded = streams.records && streams.records(stream);
        const std::shared_ptr<void> adding = is_recorded ? streams.begin_adding(stream) : nullptr;
        begun->set_value();
        std::this_thread::sleep_for(kLaunchPause);
        const auto held = is_recorded ? std::make_shared<HeldByRecording>(member) : nullptr;
        const auto sum = [member, share, held] { RunSum(member, share, held != nullptr); };
        streams.queue ? streams.queue(stream, sum) : sum();
      });
  begun->get_future().wait();
  return ncclInProgress;
}

ncclResult_t ncclMemAlloc(void** memory, std::size_t bytes) {
  Emulator& the = The();
  *memory = the.streams.allocate ? the.streams.allocate(bytes) : std::malloc(bytes);
  if (*memory == nullptr) return ncclUnhandledCudaError;
  const std::lock_guard lock(the.mutex);
  the.allocated[*memory] = bytes;
  return ncclSuccess;
}

ncclResult_t ncclMemFree(void* memory) {
  Emulator& the = The();
  {
    const std::lock_guard lock(the.mutex);
    if (the.registered.contains(memory) || the.allocated.erase(memory) == 0) {
      return ncclInvalidUsage;
    }
  }
  the.streams.release ? the.streams.release(memory) : std::free(memory);
  return ncclSuccess;
}

ncclResult_t ncclCommRegister(ncclComm_t comm, void* memory, std::size_t bytes, void** handle) {
  Emulator& the = The();
  const std::lock_guard lock(the.mutex);
  const auto allocated = the.allocated.find(memory);
  const bool is_whole = allocated != the.allocated.end() && allocated->second == bytes;
  if (!comm->ready() || comm->member->sums > 0 || !is_whole) return ncclInvalidUsage;
  if (the.registering != ncclSuccess) return the.registering;
  *handle = nullptr;
  if (the.null_handles) return ncclSuccess;
  comm->member->registered[memory] = bytes;
  the.registered.insert(memory);
  *handle = memory;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) {
  Emulator& the = The();
  const std::lock_guard lock(the.mutex);
  if (comm->member->registered.erase(handle) == 0) return ncclInvalidUsage;
  the.registered.erase(handle);
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const std::lock_guard lock(The().mutex);
  if (!comm->ready() || !comm->member->registered.empty()) return ncclInvalidArgument;
  comm->finalized = true;
  comm->polls_left = kPolls;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::lock_guard lock(The().mutex);
  const Member& member = *comm->member;
  if (!comm->finalized || comm->polls_left > 0 || member.running > 0 || member.recordings > 0)
    return ncclInvalidUsage;
  ++The().ends.destroyed;
  The().changed.notify_all();
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Emulator& the = The();
  std::unique_lock lock(the.mutex);
  Member& member = *comm->member;
  member.aborted = true;
  member.world->broken = true;
  the.changed.notify_all();
  lock.unlock();
  if (comm->launch.valid()) comm->launch.wait();
  lock.lock();
  the.changed.wait(lock, [&] { return member.running == 0 && member.recordings == 0; });
  for (const auto& [memory, bytes] : member.registered) the.registered.erase(memory);
  ++the.ends.aborted;
  the.changed.notify_all();
  lock.unlock();
  delete comm;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "another result";
  }
}

const char* ncclGetLastError(ncclComm_t /*comm*/) { return The().last_error.c_str(); }
