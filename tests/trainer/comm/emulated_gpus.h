// SPDX-License-Identifier: Apache-2.0
//
// The emulated NCCL on streams of emulated GPUs.

#pragma once

#include "tests/trainer/backend/cuda_emulator/runtime_api.h"
#include "tests/trainer/comm/nccl_emulator/emulated_nccl.h"

namespace trainer {

// What communicators have come to before is forgotten.
inline void UseEmulatedStreams() {
  nccl_emulator::UseStreams({.queue = cuda_emulator::QueueWork,
                             .records = cuda_emulator::IsRecording,
                             .begin_adding = cuda_emulator::BeginAdding,
                             .are_synchronous = true,
                             .allocate =
                                 [](std::size_t bytes) {
                                   void* memory = nullptr;
                                   cudaMalloc(&memory, bytes);
                                   return memory;
                                 },
                             .release = [](void* memory) { cudaFree(memory); }});
  nccl_emulator::TakeEnds();
}

}  // namespace trainer
