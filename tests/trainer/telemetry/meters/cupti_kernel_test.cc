// SPDX-License-Identifier: Apache-2.0

#include <cupti.h>

#include "tests/support/test.h"
#include "trainer/telemetry/meters/kernel_trace.h"

namespace trainer {
namespace {

template <typename Theirs>
void ExpectLayoutOf() {
  EXPECT_EQ(offsetof(CuptiKernel, kind), offsetof(Theirs, kind));
  EXPECT_EQ(offsetof(CuptiKernel, start), offsetof(Theirs, start));
  EXPECT_EQ(offsetof(CuptiKernel, end), offsetof(Theirs, end));
  EXPECT_EQ(offsetof(CuptiKernel, correlation), offsetof(Theirs, correlationId));
  EXPECT_EQ(offsetof(CuptiKernel, name), offsetof(Theirs, name));
  EXPECT_LE(sizeof(CuptiKernel), sizeof(Theirs));
}

TEST(CuptiKernel, LiesInMemoryAsCuptiSays) {
  ExpectLayoutOf<CUpti_ActivityKernel4>();
  ExpectLayoutOf<CUpti_ActivityKernel8>();  // of CUDA 11.8; later ones add to its end
  EXPECT_EQ(kCuptiConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

}  // namespace
}  // namespace trainer
