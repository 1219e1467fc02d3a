// SPDX-License-Identifier: Apache-2.0
//
// What of the options all ranks must share.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "trainer/options/options.h"

namespace trainer {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Options with another value than by default, for each row of the table.
Options WithAnother(const OptionRow& row) {
  static const std::map<std::string, std::string> words = {{"mode", "train"},
                                                           {"arch", "resnet101"},
                                                           {"iter_unit", "batch"},
                                                           {"augment", "none"},
                                                           {"augmentation", "torchvision"},
                                                           {"shuffle", "none"},
                                                           {"bad_records", "skip"},
                                                           {"scan_cache", "off"},
                                                           {"on_nan", "skip"},
                                                           {"weight_init", "fan_in"},
                                                           {"recipe", "mlperf"},
                                                           {"optimizer", "lars"},
                                                           {"lr_scaling", "sqrt"},
                                                           {"lr_schedule", "cosine"},
                                                           {"precision", "tf32"},
                                                           {"resume", "never"},
                                                           {"backend", "reference"},
                                                           {"comm", "mpi"},
                                                           {"graph", "off"},
                                                           {"dry_run", "full"},
                                                           {"reduce_precision", "16bit"},
                                                           {"data_format", "NCHW"},
                                                           {"mllog_status", "cloud"},
                                                           {"mllog_division", "closed"},
                                                           {"trace", "7:3"},
                                                           {"profile", "7:3"},
                                                           {"roofline", "7:3"},
                                                           {"momentum", "0.5"},
                                                           {"ema", "0.5"},
                                                           {"label_smoothing", "0.5"},
                                                           {"gpu_memory_fraction", "0.5"},
                                                           {"checkpoint_in_background", "off"}};
  std::vector<std::string> arguments = {"--batch_size=8"};
  if (row.name == "reduce_precision") arguments.emplace_back("--precision=fp16");
  if (row.name.starts_with("mllog_")) arguments.emplace_back("--mllog=file");
  if (row.name == "new_head") arguments.emplace_back("--init_from=77");
  if (row.name == "stop_at_top1") arguments.emplace_back("--eval_every=3");
  if (row.name == "record_cache_gb") arguments.emplace_back("--record_cache=/tmp");
  if (row.name == "lr_end" || row.name == "lr_decay_steps" || row.name == "mllog_division") {
    arguments.emplace_back("--lr_schedule=polynomial");
  }
  if (row.name == "roofline") arguments.emplace_back("--profile");
  if (row.name == "json" || row.name == "labels") {
    arguments.insert(arguments.end(), {"--mode=predict", "--to_predict=77"});
  }
  const auto word = words.find(row.name);
  if (row.access.is_on_or_off) {
    arguments.push_back("--" + row.name);
  } else {
    arguments.push_back("--" + row.name + "=" + (word == words.end() ? "77" : word->second));
  }
  return ParseOptions(arguments).options;
}

std::vector<std::string> NamesThatDiffer(const std::vector<Fact>& a, const std::vector<Fact>& b) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) names.push_back(a[i].name);
  }
  return names;
}

// What else than their own value, or in its place, these rows change.
const std::map<std::string, std::vector<std::string>> kOthers = {
    {"amp", {"--precision", "--use_tf_amp"}},
    {"cosine_lr", {"--lr_schedule", "--use_cosine_lr"}},
    {"dali", {"--augmentation", "--use_dali"}},
    {"finetune_checkpoint", {"--init_from"}},
    {"json", {"--mode", "--batch_size", "--to_predict", "--json"}},
    {"lr_decay_steps", {"--lr_schedule", "--lr_decay_steps"}},
    {"lr_end", {"--lr_schedule", "--lr_end"}},
    {"labels", {"--mode", "--batch_size", "--to_predict", "--labels"}},
    {"mllog_division", {"--lr_schedule", "--mllog", "--mllog_division"}},
    {"mllog_org", {"--mllog", "--mllog_org"}},
    {"mllog_platform", {"--mllog", "--mllog_platform"}},
    {"mllog_status", {"--mllog", "--mllog_status"}},
    {"new_head", {"--init_from", "--new_head"}},
    {"reduce_precision", {"--precision", "--reduce_precision"}},
    {"roofline", {"--profile", "--roofline"}},
    {"stop_at_top1", {"--eval_every", "--stop_at_top1"}},
    {"static_loss_scale", {"--loss_scale", "--use_static_loss_scaling"}},
    {"synthetic_data_size", {"--image_size"}},
    {"use_cosine_lr", {"--lr_schedule", "--use_cosine_lr"}},
    {"use_dali", {"--augmentation", "--use_dali"}},
    {"use_tf_amp", {"--precision", "--use_tf_amp"}},
    {"xla", {"--use_xla"}}};

TEST(SharedOptions, HoldEveryOptionThatRanksMayNotHaveOfTheirOwn) {
  const std::vector<Fact> usual = SharedOptions(ParseOptions({"--batch_size=8"}).options);
  for (const OptionRow& row : OptionTable()) {
    const std::vector<std::string> names = NamesThatDiffer(usual, SharedOptions(WithAnother(row)));
    const auto several = kOthers.find(row.name);
    const bool has_own_value =
        row.name == "reduce_precision" || row.name == "use_tf_amp" || row.name == "use_dali" ||
        row.name == "use_cosine_lr" || row.name == "lr_end" || row.name == "lr_decay_steps" ||
        row.name == "roofline" || row.name == "stop_at_top1" || row.name == "new_head" ||
        row.name == "json" || row.name == "labels" || row.name.starts_with("mllog_");
    EXPECT_EQ(several != kOthers.end() && !has_own_value, row.rank_rule == RankRule::kOtherName)
        << row.name;
    if (several != kOthers.end()) {
      EXPECT_EQ(names, several->second) << row.name;
    } else if (row.rank_rule == RankRule::kOwn) {
      EXPECT_THAT(names, IsEmpty()) << row.name;
    } else {
      EXPECT_THAT(names, ElementsAre("--" + row.name));
    }
  }
}

// Whoever lets ranks differ in another one has thought about it.
TEST(SharedOptions, TheseAreTheOnesThatRanksMayHaveOfTheirOwn) {
  std::set<std::string> own;
  std::set<std::string> given_alike;
  for (const OptionRow& row : OptionTable()) {
    if (row.rank_rule == RankRule::kOwn) own.insert(row.name);
    if (row.rank_rule == RankRule::kGivenAlike) given_alike.insert(row.name);
  }
  EXPECT_THAT(own,
              ElementsAre("data_idx_dir", "data_threads", "display_every", "gpu_id", "plan_cache",
                          "prefetch", "record_cache", "record_cache_gb", "scan_cache", "threads"));
  EXPECT_THAT(given_alike, ElementsAre("data_dir", "dump_state", "export_dir", "init_from", "mllog",
                                       "prometheus_dir", "tensorboard_dir", "variability_dir"));
}

TEST(SharedOptions, AreTheValuesThatCountHoweverTheyWereSpelled) {
  const auto shared = [](std::vector<std::string> arguments) {
    arguments.emplace_back("--batch_size=8");
    return SharedOptions(ParseOptions(arguments).options);
  };
  EXPECT_EQ(shared({"--lr_init=0.10", "--seed", "1"}), shared({"--lr_init", "1e-1"}));
  EXPECT_EQ(shared({"--use_cosine"}), shared({"--nouse_cosine_lr", "--use-cosine-lr"}));
  EXPECT_EQ(shared({"--data_dir=/local1/data"}), shared({"--data_dir=/local2/data"}));
  EXPECT_NE(shared({"--data_dir=/local1/data"}), shared({}));
  EXPECT_NE(shared({"--weight_decay=3.0517578125e-05"}),
            shared({"--weight_decay=3.0517578126e-05"}));
}

TEST(SharedOptions, ReadAsTheyAreWritten) {
  const std::vector<Fact> facts =
      SharedOptions(ParseOptions({"--batch_size=8", "--use_cosine_lr", "--data_dir=d",
                                  "--seed=18446744073709551615"})
                        .options);
  EXPECT_THAT(facts, Contains(Fact{"--batch_size", "--batch_size=8"}));
  EXPECT_THAT(facts, Contains(Fact{"--seed", "--seed=18446744073709551615"}));
  EXPECT_THAT(facts, Contains(Fact{"--lr_init", "--lr_init=0.1"}));
  EXPECT_THAT(facts, Contains(Fact{"--use_cosine_lr", "--use_cosine_lr"}));
  EXPECT_THAT(facts, Contains(Fact{"--deterministic", "no --deterministic"}));
  EXPECT_THAT(facts, Contains(Fact{"--data_dir", "--data_dir"}));
  EXPECT_THAT(facts, Contains(Fact{"--init_from", "no --init_from"}));
}

}  // namespace
}  // namespace trainer
