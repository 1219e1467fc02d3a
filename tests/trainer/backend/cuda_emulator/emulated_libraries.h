// SPDX-License-Identifier: Apache-2.0
//
// What tests do to the convolutions of emulated_libraries.cc.

#pragma once

namespace cuda_emulator {

// The `number`-th forward convolution from now, counted from 1, has a result whose first value is
// no number; 0: none.
void SpoilForward(int number);

}  // namespace cuda_emulator
