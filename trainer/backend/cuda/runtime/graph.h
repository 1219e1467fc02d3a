// SPDX-License-Identifier: Apache-2.0
//
// Stream capture: work that was captured once, as a CUDA graph.

#pragma once

#include <functional>
#include <memory>

#include "trainer/backend/backend.h"

namespace trainer {

// As Backend::Capture has it.  What other threads do with the GPU meanwhile is not touched.
std::unique_ptr<CapturedGraph> CaptureCudaGraph(Stream& stream, const std::function<void()>& queue);

}  // namespace trainer
