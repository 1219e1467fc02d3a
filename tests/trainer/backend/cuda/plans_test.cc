// SPDX-License-Identifier: Apache-2.0
//
// The plans of cuDNN and cuBLASLt as text.

#include "tests/support/test.h"
#include "trainer/backend/cuda/libraries/cublaslt.h"
#include "trainer/backend/cuda/libraries/cudnn_graph.h"

namespace trainer {
namespace {

TEST(PlanOfCudnn, IsReadAgain) {
  const EngineConfigId id = {CUDNN_HEUR_MODE_FALLBACK, 12, 4038};
  const std::string plan = PlanOf(id);
  EXPECT_EQ(plan, "cudnn " + std::to_string(CUDNN_HEUR_MODE_FALLBACK) + " 12 4038");
  EXPECT_EQ(EngineConfigIdOf(plan), id);
  const EngineConfigId first = {CUDNN_HEUR_MODE_A, 0, 0};
  EXPECT_EQ(EngineConfigIdOf(PlanOf(first)), first);
}

TEST(PlanOfCudnn, IsNoneOfAnotherText) {
  const std::string plan = PlanOf(EngineConfigId{CUDNN_HEUR_MODE_A, 12, 4038});
  for (const std::string& text : {std::string(), std::string("cudnn"), std::string("product"),
                                  std::string("cudnn 77 12 4038"), "cublaslt " + plan, plan + " 1",
                                  plan + "x", plan.substr(0, plan.rfind(' '))}) {
    EXPECT_EQ(EngineConfigIdOf(text), std::nullopt) << text;
  }
}

TEST(PlanOfCublaslt, IsReadAgain) {
  cublasLtMatmulAlgo_t algorithm = {};
  std::uint64_t word = 0;
  for (std::uint64_t& part : algorithm.data) part = word++;
  algorithm.data[7] = ~std::uint64_t{0};
  const std::string plan = PlanOf(algorithm);
  EXPECT_EQ(plan, "cublaslt 0 1 2 3 4 5 6 ffffffffffffffff");
  const auto again = AlgorithmOf(plan);
  ASSERT_TRUE(again);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(again->data[i], algorithm.data[i]) << i;
}

TEST(PlanOfCublaslt, IsNoneOfAnotherText) {
  for (const char* text :
       {"", "cublaslt", "product", "cudnn 0 1 2 3 4 5 6 7", "cublaslt 0 1 2 3 4 5 6",
        "cublaslt 0 1 2 3 4 5 6 7 8", "cublaslt 0 1 2 3 4 5 6 7 ", "cublaslt 0 1 2 3 4 5 6 x",
        "cublaslt 0 1 2 3 4 5 6 10000000000000000", "cublaslt0 1 2 3 4 5 6 7"}) {
    EXPECT_FALSE(AlgorithmOf(text)) << text;
  }
}

// A plan is kept by that name.
TEST(Product, HasANameOfItsOwn) {
  const MatmulSpec spec{.rows = 8, .columns = 16, .inner = 24};
  std::set<std::string> names = {ToString(spec)};
  const auto other = [&](auto change) {
    MatmulSpec changed = spec;
    change(changed);
    names.insert(ToString(changed));
  };
  other([](MatmulSpec& s) { s.rows = 9; });
  other([](MatmulSpec& s) { s.columns = 9; });
  other([](MatmulSpec& s) { s.inner = 9; });
  other([](MatmulSpec& s) { s.transpose_a = true; });
  other([](MatmulSpec& s) { s.transpose_b = true; });
  other([](MatmulSpec& s) { s.input = DType::kFloat16; });
  other([](MatmulSpec& s) { s.output = DType::kFloat16; });
  other([](MatmulSpec& s) { s.bias = true; });
  other([](MatmulSpec& s) { s.adds = true; });
  other([](MatmulSpec& s) { s.tf32 = true; });
  EXPECT_EQ(names.size(), 11U);
}

}  // namespace
}  // namespace trainer
