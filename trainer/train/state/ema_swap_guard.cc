// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/state/ema_swap_guard.h"

#include <cstddef>
#include <vector>

namespace trainer {

void SwapInEma(Network& network, Stream& stream, const std::function<void()>& use) {
  if (!network.has_ema()) {
    use();
    return;
  }
  constexpr auto kValue = Network::Part::kValue;
  std::vector<std::vector<float>> values;
  for (const Parameter& parameter : network.parameters()) {
    values.push_back(network.Export(kValue, parameter, stream));
    network.Import(kValue, parameter, network.Export(Network::Part::kAverage, parameter, stream),
                   stream);
  }
  use();
  for (std::size_t i = 0; i < values.size(); ++i) {
    network.Import(kValue, network.parameters()[i], values[i], stream);
  }
}

}  // namespace trainer
