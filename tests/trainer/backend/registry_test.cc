// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/registry.h"

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/backend/each_backend.h"
#include "trainer/backend/plan_cache.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// Buffers, copies, sums, import and export, events.

class MemoryOn : public EachBackend {
 protected:
  // Every kind of description that the ops of a network meet.
  std::vector<TensorDesc> Descriptions() {
    Backend& backend = device_.backend();
    const auto input = backend.MakeInputTransform({2, 3, 5, 7});
    const auto first = backend.MakeConvolution({input->dst(), 17, 7, 2, 3});
    const auto second = backend.MakeConvolution({first->dst(), 5, 3, 2, 1});
    const auto third = backend.MakeConvolution({second->dst(), 64, 1, 1, 0});
    const auto pool = backend.MakeGlobalAveragePool(second->dst());
    const auto linear = backend.MakeLinear({pool->dst(), 11});
    return {input->dst(),
            first->filter(),
            first->dst(),
            second->filter(),
            second->dst(),
            third->filter(),
            third->dst(),
            pool->dst(),
            linear->weight(),
            linear->dst(),
            RowMajor({19}, DType::kFloat32)};
  }
};

TEST_P(MemoryOn, ImportThenExportGivesTheValuesBack) {
  for (const TensorDesc& desc : Descriptions()) {
    const Floats values = RandomFloats(desc.shape.elements(), 1);
    EXPECT_EQ(device_.Export(device_.Make(desc, values)), values) << ToString(desc.shape);
  }
}

TEST_P(MemoryOn, ImportZeroesPadding) {
  for (const TensorDesc& desc : Descriptions()) {
    const Floats ones(static_cast<std::size_t>(desc.shape.elements()), 1);
    const Tensor tensor = device_.Make(desc, ones);
    const auto bytes = device_.Download<std::uint8_t>(tensor.data, desc.bytes);
    const std::size_t size = SizeOf(desc.dtype);
    std::int64_t set = 0;
    for (std::size_t i = 0; i < bytes.size(); i += size) {
      set += std::any_of(&bytes[i], &bytes[i] + size, [](std::uint8_t byte) { return byte != 0; });
    }
    EXPECT_EQ(set, desc.shape.elements()) << ToString(desc.shape);
  }
}

TEST_P(MemoryOn, DescriptionsHoldTheirShape) {
  for (const TensorDesc& desc : Descriptions()) {
    const auto elements = static_cast<std::size_t>(desc.shape.elements());
    EXPECT_GE(desc.bytes, elements * SizeOf(desc.dtype)) << ToString(desc.shape);
    EXPECT_EQ(desc.bytes % SizeOf(desc.dtype), 0U) << ToString(desc.shape);
    EXPECT_EQ(desc.opaque != nullptr, desc.layout == Layout::kOpaque) << ToString(desc.shape);
  }
}

TEST_P(MemoryOn, BuffersAreZeroedAndAligned) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20}) {
    const Buffer device = device_.backend().AllocateDevice(bytes);
    const Buffer host = device_.backend().AllocateHost(bytes);
    EXPECT_EQ(device.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(device.data()) % MemoryPlanner::kAlignment, 0U);
    const std::vector<std::uint8_t> zeros(bytes, 0);
    EXPECT_EQ(device_.Download<std::uint8_t>(device.data(), bytes), zeros);
    EXPECT_TRUE(
        std::equal(zeros.begin(), zeros.end(), reinterpret_cast<const std::uint8_t*>(host.data())));
  }
}

TEST_P(MemoryOn, AnEmptyBufferIsFine) {
  EXPECT_EQ(device_.backend().AllocateDevice(0).bytes(), 0U);
}

TEST_P(MemoryOn, RejectsMoreThanThereIsAndNamesTheSize) {
  const std::size_t bytes = std::numeric_limits<std::size_t>::max();
  EXPECT_THAT(tests::Rejection<Error>(EX_OSERR, [&] { device_.backend().AllocateDevice(bytes); }),
              HasSubstr(std::to_string(bytes)));
}

TEST_P(MemoryOn, ZeroClearsExactlyItsBytes) {
  const std::vector<std::uint8_t> ones(64, 1);
  std::uint8_t* memory = device_.Upload(ones);
  device_.backend().Zero(memory + 8, 16, device_.stream());
  const auto bytes = device_.Download<std::uint8_t>(memory, 64);
  EXPECT_EQ(std::count(bytes.begin() + 8, bytes.begin() + 24, 0), 16);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 1), 48);
}

// From places that are aligned and from others, and no more than was asked for.
TEST_P(MemoryOn, AddsValuesOfBothTypesToThoseInFp32) {
  constexpr std::size_t kValues = 5000;
  Backend& backend = device_.backend();
  const Floats values = RandomFloats(kValues, 1);
  const Floats start = RandomFloats(kValues, 2);
  for (const DType type : {DType::kFloat32, backend.compute_type()}) {
    const Tensor src = device_.Make(RowMajor({kValues}, type), values);
    for (const std::size_t begin : {std::size_t{0}, std::size_t{8}, std::size_t{13}}) {
      float* dst = device_.Upload(start);
      const std::size_t count = kValues - begin - 3;
      backend.Add(static_cast<const std::byte*>(src.data) + begin * SizeOf(type), type, dst + begin,
                  count, device_.stream());
      Floats expected = start;
      for (std::size_t i = begin; i < begin + count; ++i) expected[i] += values[i];
      EXPECT_EQ(device_.Download<float>(dst, kValues), expected)
          << NameOf(type) << " from " << begin;
    }
    float* dst = device_.Upload(start);
    backend.Add(src.data, type, dst, 0, device_.stream());
    EXPECT_EQ(device_.Download<float>(dst, kValues), start);
  }
}

// decay 0.75: share * value and the rest are exact in fp32.  In pieces that are aligned and others.
TEST_P(MemoryOn, MovesAnAverageByItsShareUnlessTheUpdateWasLeftOut) {
  constexpr std::size_t kValues = 5000;
  Backend& backend = device_.backend();
  const Floats values = RandomFloats(kValues, 1);
  const Floats start = RandomFloats(kValues, 2);
  const float* src = device_.Upload(values);
  const UpdateSums* updated = device_.Upload(std::vector<UpdateSums>{{5, 0, 7}});
  const UpdateSums* left_out = device_.Upload(std::vector<UpdateSums>{{5, 1, 7}});
  for (const std::size_t begin : {std::size_t{0}, std::size_t{8}, std::size_t{13}}) {
    float* average = device_.Upload(start);
    const std::size_t count = kValues - begin - 3;
    const auto move = [&](const UpdateSums* sums, std::size_t elements) {
      backend.MoveAverage(src + begin, 0.25F, sums, average + begin, elements, device_.stream());
    };
    move(left_out, count);
    move(updated, 0);
    EXPECT_EQ(device_.Download<float>(average, kValues), start);
    Floats expected = start;
    for (int update = 0; update < 2; ++update) {
      move(updated, count);
      for (std::size_t i = begin; i < begin + count; ++i) {
        expected[i] = 0.75F * expected[i] + 0.25F * values[i];
      }
    }
    EXPECT_EQ(device_.Download<float>(average, kValues), expected) << "from " << begin;
  }
}

TEST_P(MemoryOn, EventsMeasureTime) {
  const auto early = device_.backend().MakeEvent();
  const auto late = device_.backend().MakeEvent();
  early->Record(device_.stream());
  late->Record(device_.stream());
  late->MakeWait(device_.stream());
  late->Synchronize();
  EXPECT_GE(late->SecondsSince(*early), 0);
  EXPECT_LE(early->SecondsSince(*late), 0);
}

INSTANTIATE_ON_EACH_BACKEND(MemoryOn);

TEST(PlanCache, FindsWhatWasAdded) {
  PlanCache cache;
  EXPECT_EQ(cache.Find("forward"), std::nullopt);
  cache.Add("forward", "one");
  cache.Add("backward", "two");
  EXPECT_EQ(cache.Find("forward"), "one");
  cache.Add("forward", "three");
  EXPECT_EQ(cache.Find("forward"), "three");
  EXPECT_EQ(cache.Find("forwar"), std::nullopt);
}

constexpr const char* kTwoPlans = "ddltraind plans 1, crc32c b322ea28\na\t1\nb\t2 of 3\n";

TEST(PlanCache, TextIsThereOnceAfterEachChange) {
  PlanCache cache;
  EXPECT_EQ(cache.TakeNewEntries(), std::nullopt);
  cache.Add("b", "2 of 3");
  cache.Add("a", "1");
  EXPECT_EQ(cache.TakeNewEntries(), kTwoPlans);
  EXPECT_EQ(cache.TakeNewEntries(), std::nullopt);
  cache.Add("a", "3");
  EXPECT_EQ(cache.TakeNewEntries(), "ddltraind plans 1, crc32c 982d735b\na\t3\nb\t2 of 3\n");
}

TEST(PlanCache, TextIsReadAgain) {
  PlanCache cache;
  EXPECT_TRUE(cache.Read(kTwoPlans));
  EXPECT_EQ(cache.Find("a"), "1");
  EXPECT_EQ(cache.Find("b"), "2 of 3");
  EXPECT_EQ(cache.TakeNewEntries(), std::nullopt);  // that is no news
  cache.Add("a", "3");
  EXPECT_TRUE(cache.TakeNewEntries());
}

TEST(PlanCache, TextThatIsNotWholeIsNotRead) {
  const std::string whole = kTwoPlans;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    PlanCache cache;
    EXPECT_FALSE(cache.Read(whole.substr(0, i))) << i;
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(cache.Read(changed)) << i;
    EXPECT_EQ(cache.Find("a"), std::nullopt) << i;
  }
}

TEST(PlanCache, NamesHaveNoTabsOrEndsOfLines) {
  PlanCache cache;
  EXPECT_THROW(cache.Add("", "1"), Error);
  EXPECT_THROW(cache.Add("a\n", "1"), Error);
  EXPECT_THROW(cache.Add("a", "1\t2"), Error);
  EXPECT_THROW(cache.Add("a", ""), Error);
}

TEST(DevicePlanCache, AreThoseOfOneDevice) {
  const auto cache = std::make_shared<PlanCache>();
  const DevicePlanCache fast(cache, "H200, cuDNN 9.19.0");
  const DevicePlanCache slow(cache, "V100, cuDNN 9.10.0");
  fast.Add("forward", "1");
  EXPECT_EQ(fast.Find("forward"), "1");
  EXPECT_EQ(slow.Find("forward"), std::nullopt);
  slow.Add("forward", "2");
  EXPECT_EQ(fast.Find("forward"), "1");
  EXPECT_EQ(cache->Find("V100, cuDNN 9.10.0: forward"), "2");
}

TEST(DevicePlanCache, AreForgottenWithoutACache) {
  const DevicePlanCache plans(nullptr, "H200");
  plans.Add("forward", "1");
  EXPECT_EQ(plans.Find("forward"), std::nullopt);
}

TEST(Registry, AlwaysHasTheReferenceAsTheSlowest) {
  ASSERT_FALSE(BackendNames().empty());
  EXPECT_EQ(BackendNames().back(), "reference");
}

TEST(Registry, MakesEachByItsName) {
  for (const std::string& name : BackendNames()) {
    if (!BackendProblem(name).empty()) continue;  // see below
    const auto backend = MakeBackend(name, {});
    EXPECT_EQ(backend->name(), name);
    EXPECT_THAT(backend->description(), HasSubstr(name));
    EXPECT_EQ(backend->description().find('\n'), std::string::npos);
  }
}

// Nodes with other numbers of cores may work together; ranks that compute otherwise may not.
TEST(Registry, ArithmeticIsThatOfAnyNumberOfThreads) {
  std::set<std::string> arithmetics;
  std::size_t works_here = 0;
  for (const std::string& name : BackendNames()) {
    if (!BackendProblem(name).empty()) continue;
    const std::string one = MakeBackend(name, {.threads = 1})->arithmetic();
    EXPECT_EQ(MakeBackend(name, {.threads = 2})->arithmetic(), one);
    EXPECT_THAT(one, HasSubstr("fp32"));
    arithmetics.insert(one);
    ++works_here;
  }
  EXPECT_EQ(arithmetics.size(), works_here) << "two back ends say the same";
}

TEST(Registry, AutoIsTheFastestThatWorksHere) {
  std::vector<std::string> names = BackendNames();
  std::erase_if(names, [](const std::string& name) { return !BackendProblem(name).empty(); });
  EXPECT_EQ(MakeBackend("auto", {})->name(), names.front());
}

TEST(Registry, TheChoiceSaysWhyThereIsNoGpu) {
  const BackendChoice choice = ChooseBackend();
  EXPECT_EQ(choice.name, MakeBackend("auto", {})->name());
  EXPECT_EQ(choice.why_no_gpu.empty(), choice.name == "cuda");
  const std::vector<std::string> names = BackendNames();
  if (choice.name == "cuda") return;
  if (names.front() == "cuda") {
    EXPECT_EQ(choice.why_no_gpu, BackendProblem("cuda"));
  } else {
    EXPECT_THAT(choice.why_no_gpu, HasSubstr("built without the back end cuda"));
  }
}

TEST(Registry, SaysWhyABackendCannotRunHere) {
  bool is_any = false;
  for (const std::string& name : BackendNames()) {
    const std::string problem = BackendProblem(name);
    if (problem.empty()) continue;
    is_any = true;
    EXPECT_THAT(tests::Rejection<Error>(EX_UNAVAILABLE, [&] { MakeBackend(name, {}); }),
                HasSubstr(problem));
  }
  if (!is_any) GTEST_SKIP() << "all back ends of this build run here";
}

// That for GPUs is a module, but not where it is emulated.
TEST(Registry, BackEndsForCpusArePartsOfTheProgram) {
  for (const std::string& name : BackendNames()) {
    if (name == "cuda") continue;
    EXPECT_EQ(BackendFile(name), "") << name;
  }
}

TEST(Registry, RejectsAnUnknownNameAndListsTheKnown) {
  const std::string rejection = tests::Rejection<Error>(EX_USAGE, [] { MakeBackend("gpu", {}); });
  EXPECT_THAT(rejection, AllOf(HasSubstr("\"gpu\""), HasSubstr("auto")));
  for (const std::string& name : BackendNames()) EXPECT_THAT(rejection, HasSubstr(name));
}

}  // namespace
}  // namespace trainer
