// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/evaluate.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/trainer/train/generated_source.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/backend/registry.h"
#include "trainer/core/error.h"
#include "trainer/model/init.h"
#include "trainer/train/rank_statistics.h"

namespace trainer {
namespace {

constexpr std::int64_t kImageSize = 32;

// One rank's side of an evaluation of `samples` images.
class Evaluation {
 public:
  Evaluation(Communicator& communicator, std::int64_t batch, std::int64_t samples)
      : communicator_(communicator),
        network_(*backend_, {"resnet_tiny", batch, kImageSize, kImageSize, 4, 0}),
        device_batch_(*backend_, network_.spec()),
        source_({batch, kImageSize, 4, communicator.rank(), communicator.size(), samples, false}) {
    Initialize(network_, {.weight_init = WeightInit::kFanIn}, *stream_);
  }

  std::optional<EvaluationResult> Run(int stop_after = 0) {
    int asked = 0;
    return Evaluate({*backend_, network_, device_batch_, communicator_, *stream_}, source_,
                    [&] { return ++asked == stop_after; });
  }

  Network& network() { return network_; }
  Stream& stream() { return *stream_; }

 private:
  std::unique_ptr<Backend> backend_ = MakeBackend("reference", {});
  std::unique_ptr<Stream> stream_ = backend_->MakeStream();
  Communicator& communicator_;
  Network network_;
  DeviceBatch device_batch_;
  GeneratedSource source_;
};

TEST(Evaluate, CountsEachImageOnceOverAllRanks) {
  ThreadWorld world(1);
  ThreadCommunicator alone(world, 0);
  const EvaluationResult expected = *Evaluation(alone, 4, 13).Run();
  EXPECT_EQ(expected.images, 13);
  EXPECT_EQ(expected.steps, 4);

  RunRanks(3, [&](Communicator& communicator) {
    const EvaluationResult result = *Evaluation(communicator, 2, 13).Run();
    EXPECT_EQ(result.images, 13);
    EXPECT_EQ(result.steps, 3);
    EXPECT_EQ(result.top1, expected.top1);
    EXPECT_NEAR(result.loss, expected.loss, 1e-6);
  });
}

TEST(Evaluate, MayRunAgainWithTheSameResult) {
  ThreadWorld world(1);
  ThreadCommunicator alone(world, 0);
  Evaluation evaluation(alone, 4, 10);
  const double first = evaluation.Run()->loss;
  EXPECT_EQ(evaluation.Run()->loss, first);
}

TEST(Evaluate, UsesTheMeanStatisticsAndPutsBackEachRanksOwn) {
  ThreadWorld world(1);
  ThreadCommunicator alone(world, 0);
  Evaluation with_mean(alone, 2, 8);
  const std::vector<float> row = ExportStatistics(with_mean.network(), with_mean.stream());
  std::vector<float> doubled = row;
  for (float& value : doubled) value *= 2;
  ImportStatistics(with_mean.network(), doubled, with_mean.stream());
  const double expected = with_mean.Run()->loss;

  RunRanks(2, [&](Communicator& communicator) {
    Evaluation evaluation(communicator, 2, 8);
    std::vector<float> own = row;  // times 1 and 3: mean 2
    for (float& value : own) value *= communicator.rank() == 0 ? 1.0F : 3.0F;
    ImportStatistics(evaluation.network(), own, evaluation.stream());
    EXPECT_NEAR(evaluation.Run()->loss, expected, 1e-6);
    EXPECT_EQ(ExportStatistics(evaluation.network(), evaluation.stream()), own);
  });
}

TEST(Evaluate, AllRanksLeaveWhenOneIsAskedToStop) {
  RunRanks(2, [](Communicator& communicator) {
    Evaluation evaluation(communicator, 2, 64);
    EXPECT_FALSE(evaluation.Run(communicator.rank() == 1 ? 2 : 0).has_value());
  });
}

TEST(Evaluate, RefusesASetWithoutImages) {
  ThreadWorld world(1);
  ThreadCommunicator alone(world, 0);
  Evaluation evaluation(alone, 2, 0);
  try {
    evaluation.Run();
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_DATAERR);
  }
}

}  // namespace
}  // namespace trainer
