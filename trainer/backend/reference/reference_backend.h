// SPDX-License-Identifier: Apache-2.0
//
// The reference back end: the definitions of backend/ops.h as naive loops over fp32 row-major
// tensors, with sums in double.  It is for reading and for tests; nothing in it is fast.

#pragma once

#include <memory>

#include "trainer/backend/backend.h"

namespace trainer {

std::unique_ptr<Backend> MakeReferenceBackend();

}  // namespace trainer
