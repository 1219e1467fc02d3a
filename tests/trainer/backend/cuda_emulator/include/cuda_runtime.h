// SPDX-License-Identifier: Apache-2.0
//
// Stands in for NVIDIA's header of this name: a kernel's language and the runtime's API, on the
// CPU.

#pragma once

#include "tests/trainer/backend/cuda_emulator/arguments.h"
#include "tests/trainer/backend/cuda_emulator/language.h"
#include "tests/trainer/backend/cuda_emulator/runtime_api.h"
#include "tests/trainer/backend/cuda_emulator/tensor_cores.h"
#include "tests/trainer/backend/cuda_emulator/vector_types.h"
