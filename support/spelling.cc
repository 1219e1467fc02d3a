// SPDX-License-Identifier: Apache-2.0

#include "support/spelling.h"

#include <algorithm>

namespace support {

std::size_t EditDistance(std::string_view a, std::string_view b) {
  // Rows of the optimal string alignment table; `previous` and `before` are the last two.
  std::vector<std::size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    before.swap(previous);
    previous.swap(current);
  }
  return previous[b.size()];
}

std::string NearestSpelling(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestWord = 256;  // nobody mistypes more; keeps hostile input cheap
  if (word.size() > kLongestWord) return "";
  std::string nearest;
  std::size_t best = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = EditDistance(word, candidate);
    if (3 * distance > std::max(word.size(), candidate.size())) continue;
    if (nearest.empty() || distance < best) {
      nearest = candidate;
      best = distance;
    }
  }
  return nearest;
}

}  // namespace support
