// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/communicator.h"

#include <algorithm>

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

}  // namespace trainer
