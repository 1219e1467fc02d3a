// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/profiled_op.h"

#include <cmath>

#include "support/number.h"

namespace trainer {
namespace {

// All of `text`.
std::optional<double> Giga(std::string_view text) {
  const double value = support::WholeNumber<double>(text).value_or(0) * 1e9;
  return value > 0 && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<MachinePeaks> ParsePeaks(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<double> flops = Giga(text.substr(0, colon));
  const std::optional<double> bytes = Giga(text.substr(colon + 1));
  if (!flops || !bytes) return std::nullopt;
  return MachinePeaks{*flops, *bytes};
}

}  // namespace trainer
