// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/backend.h"

#include "trainer/core/error.h"

namespace trainer {

std::unique_ptr<CapturedGraph> Backend::Capture(Stream& /*stream*/,
                                                const std::function<void()>& /*queue*/) {
  DDL_CHECK(can_capture());
  return nullptr;
}

}  // namespace trainer
