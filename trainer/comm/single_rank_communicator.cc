// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/single_rank_communicator.h"

#include <unistd.h>

namespace trainer {
namespace {

class SingleCommunicator : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string description() const override { return "one rank, no communication"; }

  void StartAllReduce(void*, std::size_t, DType, Reduction, Stream&) override {}
  void Finish(Stream&) override {}
  void AllReduceSum(std::span<double>) override {}
  void AllReduceMax(std::span<double>) override {}
  void Broadcast(void*, std::size_t, int) override {}
  void Barrier() override {}
  void Abort(int exit_code) override { ::_exit(exit_code); }
};

}  // namespace

std::unique_ptr<Communicator> MakeSingleCommunicator() {
  return std::make_unique<SingleCommunicator>();
}

}  // namespace trainer
