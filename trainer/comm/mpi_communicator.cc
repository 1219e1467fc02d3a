// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/mpi_communicator.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/number.h"
#include "trainer/comm/mpi_loader.h"
#include "trainer/comm/serial_executor.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

void CheckMpi(const char* failure) {
  if (failure == nullptr) return;
  throw Error(EX_UNAVAILABLE, std::string(failure) + "; the first rank that failed says why");
}

class MpiCommunicator : public Communicator {
 public:
  explicit MpiCommunicator(const CommOptions& options)
      : mpi_(LoadMpiModule(PathOfMpiModule())),
        rank_(options.rank),
        size_(options.size),
        spans_(options.spans) {
    // Read by MPI_Init_thread; other MPIs do not know it.
    if (options.leaves_out_han) setenv("OMPI_MCA_coll_han_priority", "0", /*overwrite=*/1);
    worker_.PostAndWait([&] { Initialize(options); });
  }
  ~MpiCommunicator() override {
    try {
      worker_.PostAndWait([this] { mpi_.close(); });
    } catch (const Error&) {
      // An earlier call failed and its Error was thrown: MPI_Finalize would wait for ranks that are
      // gone.  The process ends with a failure, and the starter ends the others.
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string description() const override {
    return "MPI (" + library_ + "), " + support::Counted(size_, "rank");
  }

  void StartAllReduce(void* data, std::size_t count, DType dtype, Reduction reduction,
                      Stream& producer) override {
    DDL_CHECK(dtype == DType::kFloat32 && reduction == Reduction::kSum);
    producer.Synchronize();
    worker_.Post([this, data, count] {
      const SpanOfScope span(spans_, SpanKind::kAllReduce, 0,
                             static_cast<std::int64_t>(count * sizeof(float)));
      auto* values = static_cast<float*>(data);
      for (std::size_t done = 0; done < count; done += kMaxCount) {
        CheckMpi(mpi_.all_reduce(values + done, Part(count - done), kMpiSumOfFloats));
      }
    });
  }
  void Finish(Stream&) override { worker_.Wait(); }

  void AllReduceSum(std::span<double> values) override {
    AllReduceDoubles(values, kMpiSumOfDoubles);
  }
  void AllReduceMax(std::span<double> values) override {
    AllReduceDoubles(values, kMpiMaxOfDoubles);
  }
  void Broadcast(void* data, std::size_t bytes, int root) override {
    worker_.PostAndWait([this, data, bytes, root] {
      auto* begin = static_cast<std::byte*>(data);
      for (std::size_t done = 0; done < bytes; done += kMaxCount) {
        CheckMpi(mpi_.broadcast(begin + done, Part(bytes - done), root));
      }
    });
  }
  void Barrier() override {
    worker_.PostAndWait([this] { CheckMpi(mpi_.barrier()); });
  }
  std::optional<double> SecondsFromPrevious(std::size_t bytes) override {
    std::optional<double> seconds;
    worker_.PostAndWait([&] { seconds = SecondsUntilHere(Part(bytes)); });
    return seconds;
  }

  void Abort(int exit_code) override {
    mpi_.abort(exit_code);
    __builtin_unreachable();
  }

 private:
  static constexpr std::size_t kMaxCount = std::size_t{1} << 30;  // MPI counts are ints
  static int Part(std::size_t left) { return static_cast<int>(std::min(left, kMaxCount)); }

  void Initialize(const CommOptions& options) {
    MpiWorld world = {};
    CheckMpi(mpi_.initialize(&world));
    if (world.size != options.size || world.rank != options.rank) {
      if (world.size == 1) mpi_.leave();
      throw Error(EX_CONFIG,
                  "the environment says rank " + std::to_string(options.rank) + " of " +
                      std::to_string(options.size) + ", MPI says rank " +
                      std::to_string(world.rank) + " of " + std::to_string(world.size) +
                      ": this program and its starter do not speak the same MPI; under Slurm, "
                      "srun needs --mpi=pmix");
    }
    // "Open MPI v4.1.4"
    library_ = mpi_.library();
    library_.resize(std::min(library_.size(), library_.find_first_of(",\n")));
    // Abort must be able to call MPI while this thread waits in a collective.
    if (world.is_thread_multiple == 0) {
      throw Error(EX_CONFIG, library_ + " was built without MPI_THREAD_MULTIPLE (it gives level " +
                                 std::to_string(world.thread_level) + "); use one that has it");
    }
    CheckMpi(mpi_.open());
  }

  void AllReduceDoubles(std::span<double> values, MpiReduction reduction) {
    worker_.PostAndWait([this, values, reduction] {
      CheckMpi(mpi_.all_reduce(values.data(), Part(values.size()), reduction));
    });
  }

  double SecondsUntilHere(int bytes) {
    sent_.resize(static_cast<std::size_t>(bytes));
    here_.resize(sent_.size());
    double seconds = 0;
    CheckMpi(mpi_.pass_on(sent_.data(), here_.data(), bytes, &seconds));
    return seconds;
  }

  const MpiModule mpi_;
  int rank_;
  int size_;
  SpanRecorder* spans_;
  std::string library_;
  // Of SecondsFromPrevious: still there where it ends by an error, and MPI may write.
  std::vector<std::byte> sent_, here_;
  OrderedWorker worker_;
};

}  // namespace

std::unique_ptr<Communicator> MakeMpiCommunicator(const CommOptions& options) {
  return std::make_unique<MpiCommunicator>(options);
}

}  // namespace trainer
