// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/communicator.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>

namespace trainer {

// One sum: each rank adds its letters in its own place.
std::vector<std::string> GatherTexts(Communicator& communicator, const std::string& text) {
  std::vector<std::string> texts(static_cast<std::size_t>(communicator.size()));
  std::vector<double> letters(texts.size() * kGatheredLetters);
  const auto own = static_cast<std::size_t>(communicator.rank()) * kGatheredLetters;
  std::copy_n(text.begin(), std::min(text.size(), kGatheredLetters),
              letters.begin() + static_cast<std::ptrdiff_t>(own));
  communicator.AllReduceSum(letters);
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    for (std::size_t i = 0; i < kGatheredLetters; ++i) {
      const double letter = letters[rank * kGatheredLetters + i];
      if (letter == 0) break;
      texts[rank] += static_cast<char>(letter);
    }
  }
  return texts;
}

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

namespace {

// Tells machines apart, and is the same in all containers of one.
std::string Machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace

std::vector<int> FirstRanksOfGpus(Communicator& communicator, const std::string& gpu) {
  const std::vector<std::string> gpus =
      GatherTexts(communicator, gpu.empty() ? "" : gpu + " of " + Machine());
  std::map<std::string, int> first_ranks;
  std::vector<int> firsts;
  for (const std::string& name : gpus) {
    const int rank = static_cast<int>(firsts.size());
    firsts.push_back(name.empty() ? rank : first_ranks.emplace(name, rank).first->second);
  }
  return firsts;
}

}  // namespace trainer
