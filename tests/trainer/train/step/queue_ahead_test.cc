// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/queue_ahead.h"

#include <functional>

#include "tests/support/test.h"
#include "trainer/train/step/non_finite_guard.h"

namespace trainer {
namespace {

TEST(QueueAhead, IsOfAStepWithNothingBetween) {
  constexpr NextStep kFree = {.has_graphs = true, .is_looked_at = false};
  EXPECT_TRUE(MayQueueNext(kFree));
  EXPECT_FALSE(MayQueueNext({}));
  const std::vector<std::pair<const char*, std::function<void(NextStep&)>>> reasons = {
      {"no graphs", [](NextStep& next) { next.has_graphs = false; }},
      {"looked at", [](NextStep& next) { next.is_looked_at = true; }},
      {"two batches", [](NextStep& next) { next.batches = 2; }},
      {"a replay", [](NextStep& next) { next.is_one_replayed = true; }},
      {"another loss scale", [](NextStep& next) { next.changes_loss_scale = true; }},
      {"a request", [](NextStep& next) { next.is_requested = true; }}};
  for (const auto& [name, stand_between] : reasons) {
    NextStep next = kFree;
    stand_between(next);
    EXPECT_FALSE(MayQueueNext(next)) << name;
  }
}

TEST(QueueAhead, KnowsWhatTheLoopLooksAt) {
  constexpr std::int64_t kEnd = 100;
  struct Case {
    const char* name;
    std::function<void(TrainConfig&)> change;
    std::vector<std::int64_t> looked_at;  // of 1 to 40
  };
  const std::vector<Case> cases = {
      {"nothing", [](TrainConfig&) {}, {}},
      {"checkpoints", [](TrainConfig& c) { c.checkpoint_every = 15; }, {15, 30}},
      {"comparisons", [](TrainConfig& c) { c.paranoid = 20; }, {20, 40}},
      {"evaluations", [](TrainConfig& c) { c.eval_every = 13; }, {13, 26, 39}},
      {"a dump",
       [](TrainConfig& c) {
         c.dump_state = "dump";
         c.dump_state_step = 7;
       },
       {7}},
      {"no dump", [](TrainConfig& c) { c.dump_state_step = 7; }, {}},
      {"a trace of steps 9 and 10",
       [](TrainConfig& c) {
         c.trace = {9, 2};
       },
       {8}},
      {"no trace",
       [](TrainConfig& c) {
         c.trace = {9, 0};
       },
       {}}};
  for (const Case& now : cases) {
    TrainConfig config;
    config.checkpoint_every = 0;
    now.change(config);
    const Schedule schedule =
        MakeSchedule({.iter_unit = IterationUnit::kBatch, .num_iter = kEnd}, 64, {4, 1});
    std::vector<std::int64_t> looked_at;
    for (std::int64_t done = 1; done <= 40; ++done) {
      if (IsLookedAt(done, kEnd, config, schedule)) looked_at.push_back(done);
    }
    EXPECT_EQ(looked_at, now.looked_at) << now.name;
    EXPECT_FALSE(IsLookedAt(41, 42, config, schedule)) << now.name;
    EXPECT_TRUE(IsLookedAt(42, 42, config, schedule)) << now.name;
    EXPECT_TRUE(IsLookedAt(43, 42, config, schedule)) << now.name;
  }
}

TEST(QueueAhead, KnowsWhenAGoodStepChangesTheLossScale) {
  LossScale scale = LossScale::Dynamic(256);
  for (int step = 0; step < 4500; ++step) {
    const double before = scale.scale();
    const bool said = scale.IsAboutToGrow();
    ASSERT_TRUE(scale.Update(false));
    ASSERT_EQ(said, scale.scale() != before) << step;
  }
  LossScale fixed = LossScale::Static(256);
  for (int step = 0; step < 2100; ++step) {
    ASSERT_FALSE(fixed.IsAboutToGrow());
    ASSERT_TRUE(fixed.Update(false));
  }
}

TEST(QueueAhead, RequestsOfTwoStepsAddUp) {
  EXPECT_FALSE(Requests{}.any());
  for (const Requests& one : {Requests{.stop = true}, Requests{.save = true},
                              Requests{.pause = true}, Requests{.evaluate = true}}) {
    EXPECT_TRUE(one.any());
    for (const Requests& sum : {one | Requests{}, Requests{} | one}) {
      EXPECT_EQ(std::tie(sum.stop, sum.save, sum.pause, sum.evaluate),
                std::tie(one.stop, one.save, one.pause, one.evaluate));
    }
  }
}

TEST(QueueAhead, OnlyASoundStepHasOneBehindIt) {
  StepExchange sound;
  sound.totals = {.loss = 3, .top1 = 1, .top5 = 1, .samples = 4};
  EXPECT_TRUE(sound.is_sound());
  const std::vector<std::function<void(StepExchange&)>> spoils = {
      [](StepExchange& all) { all.bad_gradients = 1; },
      [](StepExchange& all) { all.bad_weights = 1; }, [](StepExchange& all) { all.bad_inputs = 1; },
      [](StepExchange& all) { all.totals.loss = NAN; },
      [](StepExchange& all) { all.totals.loss = -INFINITY; }};
  for (std::size_t i = 0; i < spoils.size(); ++i) {
    StepExchange all = sound;
    spoils[i](all);
    EXPECT_FALSE(all.is_sound()) << i;
  }
}

}  // namespace
}  // namespace trainer
