// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/replay_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/number.h"
#include "trainer/comm/rank_consistency.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

double ValueAt(const std::byte* values, std::size_t index, DType dtype) {
  if (dtype == DType::kFloat32) {
    float value = 0;
    std::memcpy(&value, values + index * sizeof value, sizeof value);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, values + index * sizeof bits, sizeof bits);
  return dtype == DType::kFloat16 ? WidenFloat16(bits) : WidenBFloat16(bits);
}

// What backward has written of a parameter, or forward of a statistic.
DType TypeOf(const Parameter& parameter) { return parameter.spec.desc.dtype; }

std::size_t BytesOf(const Parameter& parameter) {
  return parameter.count * SizeOf(TypeOf(parameter));
}

std::string Amount(const ReplayDifference& own) {
  return fmt::format("{} of {} values, by {:.3g} at most, {:.2g} of its norm", own.found.values,
                     own.count, own.found.largest, own.found.relative);
}

}  // namespace

PassDifference ComparePasses(const std::byte* first, const std::byte* second, std::size_t count,
                             DType dtype) {
  PassDifference found;
  const std::size_t size = SizeOf(dtype);
  if (std::memcmp(first, second, count * size) == 0) return found;
  double difference_squares = 0;
  double first_squares = 0;
  double second_squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double a = ValueAt(first, i, dtype);
    const double b = ValueAt(second, i, dtype);
    if (std::memcmp(first + i * size, second + i * size, size) != 0) ++found.values;
    const int numbers = (std::isfinite(a) ? 1 : 0) + (std::isfinite(b) ? 1 : 0);
    if (numbers < 2) found.is_finite = false;
    if (numbers == 0) continue;
    const double difference =
        numbers == 2 ? std::abs(a - b) : std::numeric_limits<double>::infinity();
    found.largest = std::max(found.largest, difference);
    difference_squares += difference * difference;
    if (numbers < 2) continue;
    first_squares += a * a;
    second_squares += b * b;
  }
  const double norm = std::sqrt(std::max(first_squares, second_squares));
  if (difference_squares > 0) found.relative = std::sqrt(difference_squares) / norm;
  return found;
}

ReplayCheck::ReplayCheck(Backend& backend, const Network& network)
    : backend_(backend), network_(network) {
  const auto add = [&](const Parameter& parameter) {
    const ParameterBinding binding = network.BindingOf(parameter);
    const Tensor& tensor = parameter.spec.statistic ? binding.value : binding.gradient;
    pieces_.push_back({&parameter, static_cast<const std::byte*>(tensor.data), TypeOf(parameter)});
  };
  const std::vector<Parameter>& parameters = network.parameters();
  for (const Parameter& parameter : parameters) {
    if (parameter.spec.statistic) add(parameter);
  }
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
    if (!parameter->spec.statistic) add(*parameter);
  }
  std::size_t end = 0;
  std::size_t largest = 0;
  for (Piece& piece : pieces_) {
    piece.offset = end;
    end += piece.bytes();
    largest = std::max(largest, piece.bytes());
  }
  first_ = backend.AllocateHost(end);
  if (!backend.is_host()) staging_ = backend.AllocateHost(largest);
  statistics_before_ = backend.AllocateDevice(network.statistics().bytes());
}

std::size_t ReplayCheck::BytesFor(const ParameterLayout& layout, bool is_host) {
  std::size_t sum = 0;
  std::size_t largest = 0;
  for (const Parameter& parameter : layout.parameters) {
    sum += BytesOf(parameter);
    largest = std::max(largest, BytesOf(parameter));
  }
  return is_host ? sum + layout.statistic_elements * sizeof(float) : sum + largest;
}

void ReplayCheck::Begin(Stream& stream) {
  backend_.CopyOnDevice(statistics_before_.data(), network_.statistics().data(),
                        statistics_before_.bytes(), stream);
}

void ReplayCheck::Keep(Stream& stream) {
  for (const Piece& piece : pieces_) {
    backend_.CopyToHost(first_.data() + piece.offset, piece.data, piece.bytes(), stream);
  }
  backend_.CopyOnDevice(network_.statistics().data(), statistics_before_.data(),
                        statistics_before_.bytes(), stream);
}

std::optional<ReplayDifference> ReplayCheck::Compare(Stream& stream) {
  const double allowed = backend_.repeat_error();
  std::optional<ReplayDifference> difference;
  bool has_overflowed = false;
  stream.Synchronize();
  for (const Piece& piece : pieces_) {
    const std::byte* second = piece.data;
    if (staging_.bytes() > 0) {
      backend_.CopyToHost(staging_.data(), piece.data, piece.bytes(), stream);
      stream.Synchronize();
      second = staging_.data();
    }
    const Parameter& parameter = *piece.parameter;
    const PassDifference found =
        ComparePasses(first_.data() + piece.offset, second, parameter.count, piece.dtype);
    has_overflowed = has_overflowed || !found.is_finite;
    const bool is_same = allowed > 0 ? found.relative <= allowed : found.values == 0;
    if (is_same) continue;
    if (difference) {
      ++difference->others;
    } else {
      difference = {parameter.name, parameter.spec.statistic, parameter.count, found};
    }
  }
  // Whether a value at the end of the range of fp16 overflows may hang on how it was rounded, and
  // the loss scale sees to it.
  if (allowed > 0 && has_overflowed && backend_.compute_type() == DType::kFloat16) return {};
  return difference;
}

std::string DescribeReplayDifference(std::int64_t step, const ReplayDifference& own,
                                     const std::string& rank_name, const std::string& host,
                                     const std::string& device, int differing, int ranks) {
  const std::string what = own.is_statistic ? own.name : "the gradient of " + own.name;
  const std::string others =
      own.others == 0 ? "" : fmt::format(", and {} parameters and statistics more", own.others);
  const std::string with = device.empty() ? "" : fmt::format(" ({})", device);
  const std::string head = fmt::format(
      "step {}: {}{} has computed two results from the same weights and images: {} differs in "
      "{}{}; the step was not applied: ",
      step, rank_name, with, what, Amount(own), others);
  if (differing > 1 && differing == ranks) {
    return head + fmt::format(
                      "so do all {} ranks, which points to software or settings rather "
                      "than to a GPU: --replay_check=0 trains without this check",
                      ranks);
  }
  const std::string without =
      host.empty() ? "" : fmt::format(" without that node (sbatch --exclude={})", host);
  return head + fmt::format(
                    "its GPU, processor or memory is failing; give the same command again"
                    "{}, and test the node (NVIDIA's GPUs: dcgmi diag -r 3)",
                    without);
}

void RequireSamePasses(std::int64_t step, const std::optional<ReplayDifference>& own,
                       const ReplayRank& rank, Communicator& communicator) {
  double differing = own ? 1 : 0;
  communicator.AllReduceSum({&differing, 1});
  if (differing == 0) return;
  const std::vector<std::uint64_t> differ = GatherNumbers(own ? 1 : 0, communicator);
  const std::vector<std::string> hosts = GatherTexts(communicator, rank.host);
  if (own) {
    const std::string name = NameOfRank(communicator.rank(), rank.host);
    const std::string device = rank.device ? rank.device() : "";
    throw RankFault(EX_OSERR,
                    DescribeReplayDifference(step, *own, name, rank.host, device,
                                             static_cast<int>(differing), communicator.size()),
                    RankFault::Whose::kOwn);
  }
  std::vector<std::string> names;
  for (std::size_t other = 0; other < differ.size(); ++other) {
    if (differ[other] != 0) names.push_back(NameOfRank(static_cast<int>(other), hosts[other]));
  }
  throw RankFault(EX_OSERR,
                  fmt::format("step {}: {} {} computed two results from the same weights and "
                              "images; the step was not applied",
                              step, Listed(names), names.size() == 1 ? "has" : "have"),
                  RankFault::Whose::kOfPeer);
}

}  // namespace trainer
