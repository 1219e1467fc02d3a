// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/memory_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "trainer/train/step/gradient_accumulator.h"

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
  const std::size_t sums = run.accumulate > 1 ? GradientAccumulator::BytesFor(plan.layout) : 0;
  const auto device_batches = static_cast<std::size_t>(run.device_batches);
  const auto host_batches = static_cast<std::size_t>(run.host_batches);
  // Weights and momentum as they are copied to be written (train/state/snapshot_copy.h), or read,
  // one tensor of them on the way; and the statistics of all ranks. A run that goes back to a
  // checkpoint reads it beside such a copy.
  const std::size_t copies = run.rolls_back ? 2 : 1;
  // With averages as much of them but for momentum; and what an evaluation puts them instead of.
  const bool holds_ema = plan.spec.has_ema;
  std::size_t snapshot =
      copies * (holds_ema ? 3 : 2) * values + static_cast<std::size_t>(run.ranks + 2) * statistics;
  if (holds_ema) snapshot += static_cast<std::size_t>(run.ranks + 2) * statistics;
  const std::size_t displaced = holds_ema ? values + statistics : 0;
  const std::size_t reserve =
      kHostReserve + static_cast<std::size_t>(run.host_threads) * kReserveOfThread;

  std::vector<MemoryItem> deps = {
      {"weights", {network.weights, 0}},
      {"gradients", {network.gradients + sums, staging}},
      {"momentum", {network.momentum, 0}},
      {"averages", {network.ema, displaced}},
      {"activations", {network.activations, 0}},
      {"workspace", {network.workspace, 0}},
      {"input batches",
       {run.is_host ? 0 : device_batches * input, host_batches * input + run.host_records}},
      {"checkpoint", {run.is_host ? 0 : LargestParameterBytes(plan.layout), snapshot}},
      {"libraries, threads", {run.is_host ? 0 : kDeviceReserve, reserve}}};
  if (!holds_ema) std::erase_if(deps, [](const auto& part) { return part.name == "averages"; });
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

}  // namespace trainer
