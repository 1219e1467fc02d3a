// SPDX-License-Identifier: Apache-2.0

#include "manual/page.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace manual {
namespace {

// Words of the option tables that stand for something else.
constexpr std::array<std::string_view, 23> kPlaceholders = {
    "FILE",       "DIR",        "NAME",     "N",          "X",         "WORD",
    "TEXT",       "ARG",        "MIN-MAX",  "HOSTLIST",   "H1,H2,...", "VAR[=VALUE]",
    "GFLOPS:GBS", "STEP:COUNT", "CASE,...", "TYPE,...",   "N,...",     "BYTES",
    "SECONDS",    "PERCENT",    "DECAY",    "N[:SIGNAL]", "JOB"};

}  // namespace

Value ValueOfShape(const std::string& shape) {
  Value value;
  value.is_optional = shape.starts_with("[");
  value.shape = value.is_optional ? shape.substr(1, shape.size() - 2) : shape;
  std::size_t start = 0;
  while (start < value.shape.size()) {
    const std::size_t end = std::min(value.shape.find('|', start), value.shape.size());
    value.choices.push_back(value.shape.substr(start, end - start));
    start = end + 1;
  }
  const auto is_placeholder = [](const std::string& part) {
    return std::find(kPlaceholders.begin(), kPlaceholders.end(), part) != kPlaceholders.end();
  };
  if (std::any_of(value.choices.begin(), value.choices.end(), is_placeholder)) {
    value.choices.clear();
  }
  return value;
}

}  // namespace manual
