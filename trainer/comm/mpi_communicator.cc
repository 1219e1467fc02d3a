// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/mpi_communicator.h"

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <string>
#include <vector>

#include "support/number.h"
#include "trainer/comm/serial_executor.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

void CheckMpi(int result, const char* call) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw Error(EX_UNAVAILABLE,
              std::string(call) + " failed: " + text + "; the first rank that failed says why");
}

// "Open MPI v4.1.4"
std::string LibraryName() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string full = text;
  return full.substr(0, full.find_first_of(",\n"));
}

class MpiCommunicator : public Communicator {
 public:
  explicit MpiCommunicator(const CommOptions& options)
      : rank_(options.rank), size_(options.size), spans_(options.spans) {
    // Read by MPI_Init_thread; other MPIs do not know it.
    if (options.leaves_out_han) setenv("OMPI_MCA_coll_han_priority", "0", /*overwrite=*/1);
    worker_.PostAndWait([&] { Initialize(options); });
  }
  ~MpiCommunicator() override {
    try {
      worker_.PostAndWait([this] {
        MPI_Comm_free(&comm_);
        MPI_Finalize();
      });
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
        CheckMpi(MPI_Allreduce(MPI_IN_PLACE, values + done, Part(count - done), MPI_FLOAT, MPI_SUM,
                               comm_),
                 "MPI_Allreduce");
      }
    });
  }
  void Finish(Stream&) override { worker_.Wait(); }

  void AllReduceSum(std::span<double> values) override { AllReduceDoubles(values, MPI_SUM); }
  void AllReduceMax(std::span<double> values) override { AllReduceDoubles(values, MPI_MAX); }
  void Broadcast(void* data, std::size_t bytes, int root) override {
    worker_.PostAndWait([this, data, bytes, root] {
      auto* begin = static_cast<std::byte*>(data);
      for (std::size_t done = 0; done < bytes; done += kMaxCount) {
        CheckMpi(MPI_Bcast(begin + done, Part(bytes - done), MPI_BYTE, root, comm_), "MPI_Bcast");
      }
    });
  }
  void Barrier() override {
    worker_.PostAndWait([this] { CheckMpi(MPI_Barrier(comm_), "MPI_Barrier"); });
  }
  std::optional<double> SecondsFromPrevious(std::size_t bytes) override {
    std::optional<double> seconds;
    worker_.PostAndWait([&] { seconds = SecondsUntilHere(Part(bytes)); });
    return seconds;
  }

  void Abort(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    __builtin_unreachable();
  }

 private:
  static constexpr std::size_t kMaxCount = std::size_t{1} << 30;  // MPI counts are ints
  static int Part(std::size_t left) { return static_cast<int>(std::min(left, kMaxCount)); }

  void Initialize(const CommOptions& options) {
    int provided = MPI_THREAD_SINGLE;
    CheckMpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    int world_size = 0;
    int world_rank = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    if (world_size != options.size || world_rank != options.rank) {
      if (world_size == 1) MPI_Finalize();
      throw Error(EX_CONFIG,
                  "the environment says rank " + std::to_string(options.rank) + " of " +
                      std::to_string(options.size) + ", MPI says rank " +
                      std::to_string(world_rank) + " of " + std::to_string(world_size) +
                      ": this program and its starter do not speak the same MPI; under Slurm, "
                      "srun needs --mpi=pmix");
    }
    // Abort must be able to call MPI while this thread waits in a collective.
    if (provided < MPI_THREAD_MULTIPLE) {
      throw Error(EX_CONFIG, LibraryName() +
                                 " was built without MPI_THREAD_MULTIPLE (it gives level " +
                                 std::to_string(provided) + "); use one that has it");
    }
    CheckMpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
    CheckMpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    library_ = LibraryName();
  }

  void AllReduceDoubles(std::span<double> values, MPI_Op operation) {
    worker_.PostAndWait([this, values, operation] {
      CheckMpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), Part(values.size()), MPI_DOUBLE,
                             operation, comm_),
               "MPI_Allreduce");
    });
  }

  double SecondsUntilHere(int bytes) {
    sent_.resize(static_cast<std::size_t>(bytes));
    here_.resize(sent_.size());
    MPI_Request receive = MPI_REQUEST_NULL;
    MPI_Request send = MPI_REQUEST_NULL;
    CheckMpi(
        MPI_Irecv(here_.data(), bytes, MPI_BYTE, (rank_ + size_ - 1) % size_, 0, comm_, &receive),
        "MPI_Irecv");
    CheckMpi(MPI_Barrier(comm_), "MPI_Barrier");
    const double begun = MPI_Wtime();
    CheckMpi(MPI_Isend(sent_.data(), bytes, MPI_BYTE, (rank_ + 1) % size_, 0, comm_, &send),
             "MPI_Isend");
    CheckMpi(MPI_Wait(&receive, MPI_STATUS_IGNORE), "MPI_Wait");
    const double seconds = MPI_Wtime() - begun;
    CheckMpi(MPI_Wait(&send, MPI_STATUS_IGNORE), "MPI_Wait");
    return seconds;
  }

  int rank_;
  int size_;
  SpanRecorder* spans_;
  std::string library_;
  // Of SecondsFromPrevious: still there where it ends by an error, and MPI may write.
  std::vector<std::byte> sent_, here_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  OrderedWorker worker_;
};

}  // namespace

std::unique_ptr<Communicator> MakeMpiCommunicator(const CommOptions& options) {
  return std::make_unique<MpiCommunicator>(options);
}

}  // namespace trainer
