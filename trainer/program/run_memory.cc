// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/run_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "trainer/comm/communicator.h"
#include "trainer/core/error.h"
#include "trainer/train/step/gradients.h"
#include "trainer/train/step/replay_check.h"

namespace trainer {
namespace {

constexpr std::int64_t kMaxImages = 10'000'000;  // more are not looked for
constexpr int kMaxPlans = 16;
constexpr int kExtrapolations = 6;  // more are of no use where needs are not nearly linear

// For what cannot be planned.  On a GPU: CUDA's libraries load kernels and take workspace as they
// go, a step is recorded as a graph, and NCCL has buffers.
constexpr std::size_t kDeviceReserve = 1'000'000'000;
// On the host: code, threads' stacks and arenas, records being decoded.
constexpr std::size_t kHostReserve = 100'000'000;
constexpr std::size_t kReserveOfThread = 8'000'000;

// A point of the needs of batches.
struct Point {
  std::int64_t batch = 0;
  MemoryBytes bytes;
};

// The largest batch of the line through two points, of one kind of memory.
std::int64_t OnLine(std::int64_t batch, std::size_t bytes, std::int64_t other_batch,
                    std::size_t other_bytes, std::size_t room) {
  const double slope = (static_cast<double>(bytes) - static_cast<double>(other_bytes)) /
                       static_cast<double>(batch - other_batch);
  if (slope <= 0) return kMaxImages;
  const double more = (static_cast<double>(room) - static_cast<double>(bytes)) / slope;
  return std::clamp<std::int64_t>(
      batch + static_cast<std::int64_t>(std::floor(std::min(more, 1e15))), 0, kMaxImages);
}

std::int64_t Extrapolate(const Point& point, const Point& other, const MemoryBytes& room) {
  return std::min(
      OnLine(point.batch, point.bytes.device, other.batch, other.bytes.device, room.device),
      OnLine(point.batch, point.bytes.host, other.batch, other.bytes.host, room.host));
}

std::size_t LargestParameterBytes(const ParameterLayout& layout) {
  std::size_t max = 0;
  for (const Parameter& parameter : layout.parameters) max = std::max(max, parameter.count);
  return max * sizeof(float);
}

}  // namespace

std::size_t InputBytes(const NetworkSpec& spec) {
  const auto of_image = static_cast<std::size_t>(spec.height * spec.width * 3 + 9);
  return static_cast<std::size_t>(spec.batch_size) * of_image;
}

std::vector<MemoryItem> MemoryItems(const NetworkDefinition& plan, const RunMemory& run) {
  const NetworkBytes network = plan.bytes();
  const std::size_t input = InputBytes(plan.spec);
  const std::size_t values = plan.layout.elements * sizeof(float);
  const std::size_t statistics = plan.layout.statistic_elements * sizeof(float);
  // Gradients that are summed in host memory.
  const std::size_t staging = !run.is_host && run.ranks > 1 ? values : 0;
  const std::size_t replay = run.replays ? ReplayCheck::BytesFor(plan.layout, run.is_host) : 0;
  const std::size_t sums = run.accumulate > 1 ? GradientAccumulator::BytesFor(plan.layout) : 0;
  const auto device_batches = static_cast<std::size_t>(run.device_batches);
  const auto host_batches = static_cast<std::size_t>(run.host_batches);
  // Weights and momentum as they are copied to be written (train/state/snapshot.h), or read,
  // one tensor of them on the way; and the statistics of all ranks. A run that goes back to a
  // checkpoint reads it beside such a copy.
  const std::size_t copies = run.rolls_back ? 2 : 1;
  // With EMA as much of it but for momentum; and what an evaluation puts them instead of.
  const bool holds_ema = plan.spec.has_ema();
  std::size_t snapshot =
      copies * (holds_ema ? 3 : 2) * values + static_cast<std::size_t>(run.ranks + 2) * statistics;
  if (holds_ema) snapshot += static_cast<std::size_t>(run.ranks + 2) * statistics;
  const std::size_t displaced = holds_ema ? values + statistics : 0;
  const std::size_t reserve =
      kHostReserve + static_cast<std::size_t>(run.host_threads) * kReserveOfThread;

  std::vector<MemoryItem> deps = {
      {"weights", {network.weights, 0}},
      {"gradients", {network.gradients + sums, staging + replay}},
      {"momentum", {network.momentum, 0}},
      {"EMA", {network.ema, displaced}},
      {"activations", {network.activations, 0}},
      {"workspace", {network.workspace, 0}},
      {"input batches",
       {run.is_host ? 0 : device_batches * input, host_batches * input + run.host_records}},
      {"checkpoint", {run.is_host ? 0 : LargestParameterBytes(plan.layout), snapshot}},
      {"libraries, threads", {run.is_host ? 0 : kDeviceReserve, reserve}}};
  if (!holds_ema) std::erase_if(deps, [](const auto& part) { return part.name == "EMA"; });
  if (run.is_host) {
    for (MemoryItem& part : deps) part.bytes = {0, part.bytes.device + part.bytes.host};
  }
  return deps;
}

MemoryBytes Sum(const std::vector<MemoryItem>& deps) {
  MemoryBytes sum;
  for (const MemoryItem& part : deps) {
    sum.device += part.bytes.device;
    sum.host += part.bytes.host;
  }
  return sum;
}

std::int64_t LargestBatch(const std::function<std::optional<MemoryBytes>(std::int64_t)>& bytes_of,
                          const MemoryBytes& room, std::int64_t first_guess) {
  std::int64_t fits = 0;
  std::int64_t too_many = kMaxImages + 1;
  std::optional<Point> last;
  std::optional<Point> before;
  std::int64_t guess = std::clamp<std::int64_t>(first_guess, 1, kMaxImages);
  for (int plans = 0; plans < kMaxPlans && fits + 1 < too_many; ++plans) {
    guess = std::clamp(guess, fits + 1, too_many - 1);
    const std::optional<MemoryBytes> bytes = bytes_of(guess);
    const bool does_fit = bytes && bytes->FitInto(room);
    (does_fit ? fits : too_many) = guess;
    if (bytes) before = std::exchange(last, Point{guess, *bytes});
    if (!bytes) {
      guess /= 2;
    } else if (plans >= kExtrapolations) {
      guess = fits + (too_many - fits) / 2;
    } else {
      // Of one batch alone: nearly all of it grows with the batch.
      guess = Extrapolate(*last, before.value_or(Point()), room);
    }
  }
  return fits;
}

std::vector<std::string> MemoryTable(const std::vector<MemoryItem>& deps, const MemoryBytes& room,
                                     std::int64_t largest_batch, bool is_host) {
  constexpr double kGigabyte = 1e9;
  const auto amount = [](std::size_t bytes) {
    if (bytes == std::numeric_limits<std::size_t>::max()) return std::string("not known");
    return fmt::format("{:.2f}", static_cast<double>(bytes) / kGigabyte);
  };
  std::vector<std::string> rows;
  const auto add = [&](const std::string& name, const std::string& device,
                       const std::string& host) {
    rows.push_back(is_host ? fmt::format("{:<20}{:>10}", name, host)
                           : fmt::format("{:<20}{:>10}{:>10}", name, device, host));
  };
  add("GB for each rank", "GPU", "host");
  const auto add_bytes = [&](const std::string& name, const MemoryBytes& bytes) {
    add("  " + name, amount(bytes.device), amount(bytes.host));
  };
  for (const MemoryItem& part : deps) add_bytes(part.name, part.bytes);
  add_bytes("total", Sum(deps));
  add_bytes("available", room);
  rows.push_back(fmt::format("largest batch       {} images in a rank", largest_batch));
  return rows;
}

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

namespace {

NetworkSpec SpecWith(const TrainConfig& config, std::int64_t batch) {
  NetworkSpec spec = NetworkSpecOf(config);
  spec.batch_size = batch;
  return spec;
}

// The largest batch of which the images alone have room, or 1: larger ones are not worth a plan,
// and their bytes may be more than a number can hold.
std::int64_t MaxImages(const TrainConfig& config, const RunMemory& run, const MemoryBudget& room) {
  const std::size_t of_image = InputBytes(SpecWith(config, 1));
  const std::size_t copies = static_cast<std::size_t>(std::max<std::int64_t>(run.host_batches, 1));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(room.bytes.host / of_image / copies));
}

// nullopt, and why in `problem`, where the device has no memory to try what the plan is made of; or
// where a library cannot compute with a batch that nobody has asked for, as with images of more
// than 2^31 values.
std::optional<NetworkDefinition> TryPlan(const TrainConfig& config, Backend& backend,
                                         std::int64_t batch, std::string& problem) {
  try {
    return DefineNetwork(backend, SpecWith(config, batch));
  } catch (const OutOfMemory& error) {
    problem = error.what();
  } catch (const Error& error) {
    if (error.exit_code() != EX_UNAVAILABLE || batch == config.batch_size) throw;
    problem = error.what();
  }
  return std::nullopt;
}

// To be read behind "15.40 GB are".
std::string DeviceOrigin(const MemoryBudget& room) {
  if (room.ranks_of_gpu == 1) return "free";
  return fmt::format("its part of what is free ({} ranks share the GPU)", room.ranks_of_gpu);
}

// What a batch needs, which may be more than MemoryBytes can hold.
struct Needed {
  double device = 0;
  double host = 0;
  bool is_exact = true;
};

// By what a smaller batch needs, nearly all of which grows with it.
Needed ScaledUp(const MemoryBytes& bytes, std::int64_t of_batch, std::int64_t to_batch) {
  const double factor = static_cast<double>(to_batch) / static_cast<double>(of_batch);
  return {static_cast<double>(bytes.device) * factor, static_cast<double>(bytes.host) * factor,
          of_batch == to_batch};
}

// "--batch_size=512 needs 11.20 GB of host memory for each rank, but only 4.00 GB are left on this
// machine (MemAvailable)".
std::string DescribeLack(const Needed& needed, const TrainConfig& config,
                         const MemoryBudget& room) {
  const std::string what = config.mode == RunMode::kPredict
                               ? "one image"
                               : "--batch_size=" + std::to_string(config.batch_size);
  const auto device_there = static_cast<double>(room.bytes.device);
  const auto text = [&](double bytes, const std::string& whose, double there,
                        const std::string& how) {
    return fmt::format("{} needs {}{} of {}, but only {} are {}", what,
                       needed.is_exact ? "" : "about ", Gigabytes(bytes), whose, Gigabytes(there),
                       how);
  };
  return needed.device > device_there
             ? text(needed.device, "the GPU's memory", device_there, DeviceOrigin(room))
             : text(needed.host, "host memory for each rank", static_cast<double>(room.bytes.host),
                    room.host_origin);
}

std::string Advice(const MemoryCheck& check, RunMode mode) {
  if (mode == RunMode::kPredict) return "give a smaller --image_size";
  if (check.largest_batch > 0) {
    return fmt::format("the largest that fits is --batch_size={}", check.largest_batch);
  }
  return "not one image fits: give a smaller --image_size or --prefetch, or start fewer ranks on a "
         "node";
}

}  // namespace

MemoryCheck CheckMemory(const TrainConfig& config, Backend& backend, const RunMemory& run,
                        const MemoryBudget& room, Communicator& communicator, bool wants_largest) {
  MemoryCheck check;
  std::string problem;
  const std::int64_t max_images = MaxImages(config, run, room);
  if (config.batch_size <= max_images) {
    check.plan = TryPlan(config, backend, config.batch_size, problem);
  }
  if (check.plan) check.deps = MemoryItems(*check.plan, run);
  const bool fits_here = check.plan && Sum(check.deps).FitInto(room.bytes);

  const int ranks = communicator.size();
  double lowest_without = fits_here ? -ranks : -communicator.rank();
  communicator.AllReduceMax({&lowest_without, 1});
  check.fits = lowest_without == -ranks;
  if (check.fits && !wants_largest) return check;

  const auto bytes_of = [&](std::int64_t batch) -> std::optional<MemoryBytes> {
    if (batch == config.batch_size && check.plan) return Sum(check.deps);
    const std::optional<NetworkDefinition> plan = TryPlan(config, backend, batch, problem);
    if (!plan) return std::nullopt;
    return Sum(MemoryItems(*plan, run));
  };
  const std::int64_t own_largest = LargestBatch(
      bytes_of, room.bytes, std::clamp<std::int64_t>(config.batch_size, 1, max_images));
  double min = -static_cast<double>(own_largest);
  communicator.AllReduceMax({&min, 1});
  check.largest_batch = static_cast<std::int64_t>(-min);
  if (!check.fits && communicator.rank() == -lowest_without) {
    const std::int64_t known =
        check.plan ? config.batch_size : std::max<std::int64_t>(own_largest, 1);
    const std::optional<MemoryBytes> bytes = bytes_of(known);
    const std::string lack =
        bytes ? DescribeLack(ScaledUp(*bytes, known, config.batch_size), config, room) : problem;
    check.rejection = lack + ": " + Advice(check, config.mode);
  }
  return check;
}

std::vector<std::string> DescribeMemory(const MemoryCheck& check, const MemoryBudget& room,
                                        bool full) {
  std::vector<std::string> rows =
      MemoryTable(check.deps, room.bytes, check.largest_batch, room.is_host);
  const auto add = [&](const char* whose, std::size_t bytes, const std::string& origin) {
    rows.push_back(
        fmt::format("{:<20}{} are {}", whose, Gigabytes(static_cast<double>(bytes)), origin));
  };
  if (room.ranks_of_gpu > 1) add("GPU's memory", room.bytes.device, DeviceOrigin(room));
  add("host memory", room.bytes.host, room.host_origin);
  if (!full) return rows;
  for (std::string& row : check.plan->Describe()) rows.push_back(std::move(row));
  return rows;
}

void RequireMemory(const MemoryCheck& check, Communicator& communicator) {
  if (check.fits) return;
  if (!check.rejection.empty()) throw Error(EX_CONFIG, check.rejection);
  while (true) communicator.Barrier();
}

}  // namespace trainer
