// SPDX-License-Identifier: Apache-2.0

#include "scaling/bus_rates.h"

#include <cstddef>
#include <optional>
#include <sstream>

#include "support/number.h"

namespace scaling {
namespace {

constexpr std::size_t kRateColumn = 7;

std::vector<std::string> WordsOf(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace

BusRateTable ParseBusRates(std::string_view text) {
  BusRateTable table;
  std::istringstream stream{std::string(text)};
  int number = 0;
  double last = -1;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    const std::vector<std::string> words = WordsOf(line);
    if (words.empty() || words.front().front() == '#') continue;
    const std::optional<double> bytes = support::WholeNumber<double>(words.front());
    const std::optional<double> rate = words.size() > kRateColumn
                                           ? support::WholeNumber<double>(words[kRateColumn])
                                           : std::nullopt;
    const bool is_row = bytes && rate && *bytes >= 0 && *rate >= 0 && *bytes < 1e15 && *rate < 1e6;
    if (!is_row) {
      table.problem = std::to_string(number) +
                      ": no line of all_reduce_perf: size, count, type, redop, root, time, algbw, "
                      "busbw, ...";
      return table;
    }
    if (*bytes <= last) {
      table.problem = std::to_string(number) + ": sizes do not grow";
      return table;
    }
    last = *bytes;
    if (*bytes > 0 && *rate > 0) table.rates.push_back({*bytes, *rate * 1e9});
  }
  if (table.rates.empty())
    table.problem = std::to_string(number) + ": no line with a bus bandwidth";
  return table;
}

}  // namespace scaling
