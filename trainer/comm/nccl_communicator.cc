// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/nccl_communicator.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/comm/nccl_library.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr Seconds kEndSeconds{30};   // for NCCL to end in good order
constexpr Seconds kAbortSeconds{3};  // for NCCL to abort; the process ends after it anyway
// For its order to leave the GPU, where the rest of an abort waits for the end of recorded work.
constexpr Seconds kLeaveSeconds{0.2};
constexpr std::chrono::microseconds kThreadPoll{50};
constexpr std::chrono::milliseconds kErrorPoll{1};

int ExitCodeOf(ncclResult_t result) {
  switch (result) {
    case ncclInvalidUsage:
    case ncclInvalidArgument:
      return EX_CONFIG;
    case ncclUnhandledCudaError:
    case ncclInternalError:
      return EX_SOFTWARE;
    default:
      return EX_UNAVAILABLE;
  }
}

ncclDataType_t TypeOf(DType dtype) {
  DDL_CHECK(dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16);
  if (dtype == DType::kFloat32) return ncclFloat32;
  return dtype == DType::kFloat16 ? ncclFloat16 : ncclBfloat16;
}

// Memory that a communicator has registered.  Shared with the buffers, either of which may go
// first.
class Registrations {
 public:
  void Begin(ncclComm_t comm) { comm_ = comm; }
  void Add(void* handle) { handles_.push_back(handle); }
  // The communicator is about to end in good order.
  ncclResult_t End() {
    ncclResult_t result = ncclSuccess;
    while (result == ncclSuccess && !handles_.empty()) result = Remove(handles_.back());
    comm_ = nullptr;
    return result;
  }
  // It was aborted, and may use the memory for a while yet: the process, which ends, gives it back.
  void Abandon() {
    comm_ = nullptr;
    is_abandoned_ = true;
  }
  void Free(void* memory, void* handle) {
    if (is_abandoned_) return;
    Remove(handle);
    TheNcclLibrary().mem_free(memory);
  }

 private:
  ncclResult_t Remove(void* handle) {
    const bool is_there = std::erase(handles_, handle) > 0;
    if (!is_there || comm_ == nullptr) return ncclSuccess;
    return TheNcclLibrary().comm_deregister(comm_, handle);
  }

  ncclComm_t comm_ = nullptr;
  std::vector<void*> handles_;
  bool is_abandoned_ = false;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(Communicator& host, NcclDeps deps, const NcclOptions& options)
      : nccl_(TheNcclLibrary()), host_(host), deps_(std::move(deps)), options_(options) {
    DDL_CHECK(nccl_.problem.empty());
    Start();
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator() override {
    if (comm_ == nullptr) return;
    if (std::uncaught_exceptions() > exceptions_before_ || !End()) AbortNccl();
  }

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  std::string description() const override {
    return "NCCL " + nccl_.version + " beside " + host_.description();
  }
  bool reduces_device_memory() const override { return true; }

  Buffer AllocateReduced(std::size_t bytes) override {
    RequireWhole();
    if (nccl_.mem_alloc == nullptr || bytes == 0) return {};
    void* memory = nullptr;
    Check(nccl_.mem_alloc(&memory, bytes), kAllocating);
    void* handle = nullptr;  // stays null where NCCL_LOCAL_REGISTER=0
    const ncclResult_t registered = nccl_.comm_register(comm_, memory, bytes, &handle);
    if (handle != nullptr) registrations_->Add(handle);
    Buffer buffer(memory, bytes, [all = registrations_, handle](void* allocated) {
      all->Free(allocated, handle);
    });
    Check(registered, kAllocating);
    return buffer;
  }

  void StartAllReduce(void* data, std::size_t count, DType dtype, Reduction reduction,
                      Stream& producer) override {
    RequireWhole();
    const ncclDataType_t type = TypeOf(dtype);
    const ncclRedOp_t operation = reduction == Reduction::kMean ? ncclAvg : ncclSum;
    if (count == 0) return;
    is_captured_ = is_captured_ || producer.Records();
    deps_.produced->Record(producer);
    deps_.produced->MakeWait(*deps_.stream);
    Check(nccl_.all_reduce(data, data, count, type, operation, comm_, Queue()), kSumming);
    // A thread of NCCL's puts the sum on its stream.  Nobody else may add to a recording meanwhile,
    // and nothing may be queued behind a sum that is not there yet.
    Await(Seconds(options_.stall_seconds), kSumming);
  }

  void Finish(Stream& consumer) override {
    RequireWhole();
    deps_.summed->Record(*deps_.stream);
    deps_.summed->MakeWait(consumer);
  }

  void Synchronize(Stream& stream) override {
    RequireWhole();
    const auto start = Clock::now();
    auto next_look = start;
    while (!stream.Finished()) {
      const auto now = Clock::now();
      if (now >= next_look) {
        next_look = now + kErrorPoll;
        Check(State(), kSumming);
        if (now - start > Seconds(options_.stall_seconds)) Fail(ncclInProgress, kSumming);
      }
      std::this_thread::yield();
    }
    Check(State(), kSumming);  // a sum that has ended without the shares of all is none
  }

  void AllReduceSum(std::span<double> values) override { host_.AllReduceSum(values); }
  void AllReduceMax(std::span<double> values) override { host_.AllReduceMax(values); }
  void Broadcast(void* data, std::size_t bytes, int root) override {
    host_.Broadcast(data, bytes, root);
  }
  void Barrier() override { host_.Barrier(); }
  std::optional<double> SecondsFromPrevious(std::size_t bytes) override {
    return host_.SecondsFromPrevious(bytes);
  }

  void Abort(int exit_code) override {
    AbortNccl();
    host_.Abort(exit_code);
  }

 private:
  static constexpr const char* kStarting = "start NCCL";
  static constexpr const char* kSumming = "sum gradients";
  static constexpr const char* kAllocating = "allocate memory for gradients by ncclMemAlloc";

  void Start() {
    ncclUniqueId id = {};
    if (rank() == 0) Check(nccl_.get_unique_id(&id), kStarting);
    host_.Broadcast(&id, sizeof id, 0);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    if (options_.max_ctas > 0) config.maxCTAs = options_.max_ctas;
    Check(nccl_.comm_init_rank_config(&comm_, size(), id, rank(), &config), kStarting);
    Await(Seconds(options_.start_seconds), kStarting);
    registrations_->Begin(comm_);
  }

  // False if it does not end in good order.
  bool End() {
    ncclResult_t result = Settle(kEndSeconds);  // a sum that was just started
    if (result == ncclSuccess) result = registrations_->End();
    if (result != ncclSuccess) return false;
    result = nccl_.comm_finalize(comm_);
    if (result == ncclInProgress) result = Settle(kEndSeconds);
    return result == ncclSuccess && nccl_.comm_destroy(comm_) == ncclSuccess;
  }

  // Makes what is on the GPU leave, on this rank; the others notice it.  NCCL might hang in it.
  void AbortNccl() {
    if (comm_ == nullptr) return;
    registrations_->Abandon();
    std::packaged_task<void()> abort(
        [call = nccl_.comm_abort, comm = std::exchange(comm_, nullptr)] { call(comm); });
    const std::future<void> aborted = abort.get_future();
    std::thread(std::move(abort)).detach();
    aborted.wait_for(is_captured_ ? kLeaveSeconds : kAbortSeconds);
  }

  ncclResult_t State() const {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t result = nccl_.comm_get_async_error(comm_, &state);
    return result == ncclSuccess ? state : result;
  }

  // How NCCL's own threads have come off; ncclInProgress if they still work after `bound`.
  ncclResult_t Settle(Seconds bound) const {
    const auto end = Clock::now() + bound;
    ncclResult_t state = State();
    while (state == ncclInProgress && Clock::now() < end) {
      std::this_thread::sleep_for(kThreadPoll);
      state = State();
    }
    return state;
  }

  void Await(Seconds bound, const char* action) {
    const ncclResult_t result = Settle(bound);
    if (result != ncclSuccess) Fail(result, action);
  }
  // Who goes on after an error, as without a recording, hears of it again.
  void RequireWhole() const {
    if (failure_) throw Error(*failure_);
    DDL_CHECK(comm_ != nullptr);
  }

  void Check(ncclResult_t result, const char* action) {
    if (result != ncclSuccess && result != ncclInProgress) Fail(result, action);
  }

  [[noreturn]] void Fail(ncclResult_t result, const char* action) {
    std::string why = "the others have not answered in time";
    if (result != ncclInProgress) {
      why = nccl_.get_error_string(result);
      const std::string last = nccl_.get_last_error(comm_);
      if (!last.empty()) why += " (" + last + ")";
      std::replace(why.begin(), why.end(), '\n', ' ');
    }
    AbortNccl();
    const bool own = ExitCodeOf(result) != EX_UNAVAILABLE;
    failure_.emplace(ExitCodeOf(result),
                     "rank " + std::to_string(rank()) + " cannot " + action + ": " + why +
                         (own ? "; NCCL_DEBUG=WARN shows more, --comm=mpi does without NCCL"
                              : "; the first rank that failed says why"));
    throw Error(*failure_);
  }

  cudaStream_t Queue() const { return static_cast<cudaStream_t>(deps_.stream->handle()); }

  const NcclLibrary& nccl_;
  Communicator& host_;
  NcclDeps deps_;
  const NcclOptions options_;
  const int exceptions_before_ = std::uncaught_exceptions();
  ncclComm_t comm_ = nullptr;  // null once it was aborted
  const std::shared_ptr<Registrations> registrations_ = std::make_shared<Registrations>();
  std::optional<Error> failure_;  // why
  bool is_captured_ = false;      // some sum
};

}  // namespace

std::string NcclProblem() { return TheNcclLibrary().problem; }

std::string NcclVersion() { return TheNcclLibrary().version; }

std::unique_ptr<Communicator> MakeNcclCommunicator(Communicator& host, NcclDeps deps,
                                                   const NcclOptions& options) {
  return std::make_unique<NcclCommunicator>(host, std::move(deps), options);
}

}  // namespace trainer
