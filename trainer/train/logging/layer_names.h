// SPDX-License-Identifier: Apache-2.0
//
// What a recorder of ops is to call the layers of a network.

#pragma once

#include "trainer/backend/op_recorder.h"
#include "trainer/model/network.h"

namespace trainer {

// Torchvision's names: "layer1.0.conv1".
void NameLayers(const Network& network, OpRecorder& recorder);

}  // namespace trainer
