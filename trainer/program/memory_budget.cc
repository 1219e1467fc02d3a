// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "trainer/comm/shared_gpu_ranks.h"

namespace trainer {
namespace {

// What is free on it, and how many ranks compute there.
struct Gpu {
  double free_bytes = 0;
  int ranks = 0;

  double part() const { return free_bytes / ranks; }
};

std::string Describe(const std::vector<Gpu>& gpus) {
  const auto [fewest, max] = std::ranges::minmax(gpus, {}, &Gpu::ranks);
  const auto [min, largest] = std::ranges::minmax(gpus, {}, &Gpu::part);
  if (max.ranks == 1) return "";
  const std::string amount = Gigabytes(min.part());
  return (fewest.ranks == max.ranks
              ? fmt::format("{0} ranks share each GPU: each plans with 1/{0} of what is free, {1}",
                            max.ranks, amount)
              : fmt::format("up to {} ranks share a GPU: each plans with its part of what is free, "
                            "{}",
                            max.ranks, amount)) +
         (Gigabytes(largest.part()) == amount ? "" : " or more");
}

}  // namespace

std::string Gigabytes(double bytes) { return fmt::format("{:.2f} GB", bytes / 1e9); }

MemoryBudget QueryMemoryBudget(const Backend& backend, const HostMemory& host) {
  MemoryBudget room;
  room.is_host = backend.is_host();
  room.bytes = {room.is_host ? 0 : backend.free_bytes(), host.bytes};
  room.host_origin = host.origin;
  return room;
}

MemoryBudget ShareGpus(MemoryBudget own, const std::string& gpu, Communicator& communicator) {
  const std::vector<int> firsts = FirstRanksOfGpus(communicator, gpu);
  const auto rank = static_cast<std::size_t>(communicator.rank());
  std::vector<double> free_bytes(firsts.size());
  free_bytes[rank] = static_cast<double>(own.bytes.device);
  communicator.AllReduceSum(free_bytes);

  std::vector<Gpu> gpus(firsts.size());  // each in the place of the first of its ranks
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    Gpu& of_rank = gpus[static_cast<std::size_t>(firsts[i])];
    const bool is_first = of_rank.ranks++ == 0;
    of_rank.free_bytes = is_first ? free_bytes[i] : std::min(of_rank.free_bytes, free_bytes[i]);
  }
  const Gpu own_gpu = gpus[static_cast<std::size_t>(firsts[rank])];
  std::erase_if(gpus, [](const Gpu& place) { return place.ranks == 0; });

  own.sharing = Describe(gpus);
  own.ranks_of_gpu = own_gpu.ranks;
  if (own_gpu.ranks > 1) own.bytes.device = static_cast<std::size_t>(own_gpu.part());
  return own;
}

}  // namespace trainer
