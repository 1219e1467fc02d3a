// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/memory_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/train/loop/trainer.h"

namespace trainer {
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
