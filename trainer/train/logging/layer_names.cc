// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/logging/layer_names.h"

#include <string>

namespace trainer {

void NameLayers(const Network& network, OpRecorder& recorder) {
  for (const Parameter& parameter : network.parameters()) {
    // "layer1.0.conv1" of "layer1.0.conv1.weight".
    const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
    const ParameterBinding binding = network.BindingOf(parameter);
    for (const Tensor& tensor : {binding.value, binding.gradient}) {
      if (tensor) recorder.NameLayer(tensor.data, layer);
    }
  }
}

}  // namespace trainer
