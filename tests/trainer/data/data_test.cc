// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <stdexcept>

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/core/few_threads.h"
#include "tests/trainer/data/data_fixture.h"
#include "trainer/core/error.h"
#include "trainer/core/thread.h"
#include "trainer/data/class_list.h"
#include "trainer/data/data_loader.h"
#include "trainer/data/example.h"
#include "trainer/data/prefetch.h"
#include "trainer/data/shard_sampler.h"

namespace trainer {
namespace {

std::string ClassListError(const std::string& text) {
  return DataErrorOf([&] { ParseClassList(text, "list"); });
}

TEST(ParseClassList, HasNamesAndTexts) {
  EXPECT_THAT(ParseClassList("n01440764 tench, Tinca tinca\nn01443537\tgoldfish\r\nn01484850", "l"),
              ElementsAre(ImageClass{"n01440764", "tench, Tinca tinca"},
                          ImageClass{"n01443537", "goldfish"}, ImageClass{"n01484850", ""}));
}

// As editors of Windows write them.
TEST(ParseClassList, MayBeginWithAByteOrderMark) {
  EXPECT_THAT(ParseClassList("\xEF\xBB\xBF"
                             "cat\r\ndog\r\n",
                             "list"),
              ElementsAre(ImageClass{"cat", ""}, ImageClass{"dog", ""}));
}

TEST(ParseClassList, RejectsWithTheLine) {
  EXPECT_EQ(ClassListError("a\nb\na x\n"), "list:3: the class a is there twice");
  EXPECT_EQ(ClassListError("a\n\nb\n"), "list:2: the line is empty");
  EXPECT_EQ(ClassListError(""), "list:1: the file is empty");
}

TEST(ParseClassList, HasNumbersBehindTheNamesInTheOrderOfTheLines) {
  struct Case {
    const char* text;
    const char* error;  // "": none
  };
  const Case cases[] = {
      {"dog 1\ncat 0\neel 2\n",
       "list:1: the class dog has the number 1 behind it, but its line is that of number 0: labels "
       "count the lines; sort them by the numbers (sort -n -k 2)"},
      {"cat 1\neel 3\ndog 2\n",
       "list:2: the class eel has the number 3 behind it, but its line is that of number 2: labels "
       "count the lines; sort them by the numbers (sort -n -k 2)"},
      {"cat 0\ndog 1\neel 2\n", ""},
      {"cat 1\ndog 2\neel 3\n", ""},
      {"cat 3\ndog 2\n", ""},
      {"cat 2\ndog 0\n", ""},
      {"cat 1\ndog 1\neel 0\n", ""},
      {"cat 1\ndog 0 x\n", ""},
      {"label\tclass\ttext\n1\tdog\t1\n2\tcat\t0\n", ""},
  };
  for (const Case& one : cases) {
    if (*one.error == '\0') {
      EXPECT_FALSE(ParseClassList(one.text, "list").empty()) << one.text;
    } else {
      EXPECT_EQ(ClassListError(one.text), one.error);
    }
  }
}

TEST(Labels, AreALineForEachClassWithTabs) {
  EXPECT_EQ(FormatLabels({{"n01440764", "tench, Tinca tinca"}, {"cat", ""}, {"", ""}, {"", "x"}}),
            "label\tclass\ttext\n"
            "1\tn01440764\ttench, Tinca tinca\n"
            "2\tcat\t\n"
            "3\t2\t\n"
            "4\t3\tx\n");
}

TEST(Labels, ComeBackWhateverIsInThem) {
  const std::vector<ImageClass> classes = {{"Golden Retriever", "a dog"},
                                           {"a\tb", "two\nlines"},
                                           {"c\\t\\", "\\n"},
                                           {"10", "\r"},
                                           {"label", "class\ttext"}};
  EXPECT_EQ(ParseClassList(FormatLabels(classes), "labels.txt"), classes);
}

TEST(Labels, AreRejectedWithTheLine) {
  const std::string header = "label\tclass\ttext\n";
  EXPECT_EQ(ClassListError(header + "1\ta\t\n3\tb\t\n"),
            "list:3: expected the label 2, a tab and its class");
  EXPECT_EQ(ClassListError(header + "1 a\n"), "list:2: expected the label 1, a tab and its class");
  EXPECT_EQ(ClassListError(header + "1\ta\n2\ta\n"), "list:3: the class a is there twice");
  EXPECT_EQ(ClassListError(header + "1\t\tx\n"), "list:2: the label 1 has no class");
}

TEST(Labels, AreWrittenBesideADataSetOnceAndForAll) {
  const TemporaryDirectory dir;
  EXPECT_TRUE(ReadLabels(dir.path()).empty());
  const std::vector<ImageClass> classes = {{"a", ""}, {"b", "text"}};
  WriteLabels(dir.path(), classes);
  EXPECT_EQ(ReadLabels(dir.path()), classes);
  WriteLabels(dir.path(), classes);
  EXPECT_THROW(WriteLabels(dir.path(), {{"a", ""}}), Error);
  EXPECT_EQ(ReadLabels(dir.path()), classes);
  // As TF-Slim has them.
  WriteText(dir / "labels.txt", "0:daisy\n1:dandelion\n");
  EXPECT_EQ(DataErrorOf([&] { ReadLabels(dir.path()); }),
            dir.path().string() + "/labels.txt:1: this is not what ddldata convert writes");
  EXPECT_THROW(WriteLabels(dir.path(), classes), Error);
  EXPECT_EQ(tests::TextOf(dir / "labels.txt"), "0:daisy\n1:dandelion\n");
}

// One field of type "length-delimited" of the protocol buffer wire format.
std::string Field(int number, const std::string& content) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(content.size())} +
         content;
}

// A map entry: key, and the Feature with the list of kind `list` (1 bytes, 2 floats, 3 integers).
std::string Entry(const std::string& key, int list, const std::string& values) {
  return Field(1, Field(1, key) + Field(2, Field(list, values)));
}

std::string ExampleOf(const std::string& entries) { return Field(1, entries); }

const std::string kEncoded = Entry("image/encoded", 1, Field(1, "jpeg"));
const std::string kLabel = Entry("image/class/label", 3, Field(1, "\x07"));

std::string RejectionOfExample(const std::string& bytes) {
  return DataErrorOf([&] { ParseExample(AsBytes(bytes)); });
}

TEST(Example, ReadsTensorFlowsWireFormat) {
  const ImageExample example = ParseExample(AsBytes(ExampleOf(kEncoded + kLabel)));
  EXPECT_EQ(example.encoded, "jpeg");
  EXPECT_EQ(example.label, 7);
  EXPECT_TRUE(example.boxes.empty());
}

TEST(Example, GivesBackWhatWasWritten) {
  ImageExample example;
  example.encoded = std::string("\0\xff data", 7);
  example.label = 1000;
  example.boxes = {{0.1F, 0.2F, 0.3F, 0.4F}, {0, 0, 1, 1}};
  const std::string bytes = SerializeExample(example);
  EXPECT_EQ(bytes, SerializeExample(example));
  const ImageExample read = ParseExample(AsBytes(bytes));
  EXPECT_EQ(read.encoded, example.encoded);
  EXPECT_EQ(read.label, 1000);
  EXPECT_THAT(read.boxes, ElementsAre(example.boxes[0], example.boxes[1]));
}

TEST(Example, RejectsWhatIsNoExample) {
  EXPECT_EQ(RejectionOfExample("this is text"), "the data is not a tf.train.Example");
  EXPECT_EQ(RejectionOfExample(ExampleOf(kEncoded + kLabel).substr(0, 20)),
            "the data is not a tf.train.Example");
}

TEST(Example, RejectsMissingFeatures) {
  EXPECT_EQ(RejectionOfExample(""), "the Example has no feature image/encoded");
  EXPECT_EQ(RejectionOfExample(ExampleOf(kLabel)),
            "the Example has no feature image/encoded; it has image/class/label");
  EXPECT_EQ(RejectionOfExample(ExampleOf(kEncoded)),
            "the Example has no feature image/class/label; it has image/encoded");
}

TEST(Example, SaysWhichFeaturesAnotherProgramGaveIt) {
  const auto named = [](const std::string& name) { return Entry(name, 1, Field(1, "x")); };
  EXPECT_EQ(RejectionOfExample(ExampleOf(named("label") + named("image") + named("file\x1bname"))),
            "the Example has no feature image/encoded; it has image, label");
  EXPECT_EQ(RejectionOfExample(ExampleOf(named("a") + named("b") + named("c") + named("d") +
                                         named("e") + named("f"))),
            "the Example has no feature image/encoded; it has a, b, c, d, e, ...");
}

TEST(Example, RejectsFeaturesOfAnotherType) {
  EXPECT_EQ(RejectionOfExample(ExampleOf(Entry("image/encoded", 3, Field(1, "\x07")) + kLabel)),
            "the feature image/encoded is not one string of bytes");
  EXPECT_EQ(RejectionOfExample(ExampleOf(kEncoded + Entry("image/class/label", 1, Field(1, "7")))),
            "the feature image/class/label is not one integer");
  EXPECT_EQ(
      RejectionOfExample(ExampleOf(kEncoded + Entry("image/class/label", 3, Field(1, "\x07\x08")))),
      "the feature image/class/label is not one integer");
}

TEST(Example, RejectsBoxesOutsideTheImage) {
  for (const float corner : {-0.01F, 1.01F, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(RejectionOfExample(SerializeExample({.boxes = {{0, 0, 1, corner}}})),
                StartsWith("the feature image/object/bbox/ymax has the value "));
  }
}

TEST(Example, RejectsBoxesWithMissingCorners) {
  const std::string corner = Entry("image/object/bbox/xmin", 2, Field(1, std::string(4, '\0')));
  EXPECT_EQ(RejectionOfExample(ExampleOf(kEncoded + kLabel + corner)),
            "the features image/object/bbox/{xmin,ymin,xmax,ymax} differ in length");
}

struct Case {
  std::int64_t images;
  std::int64_t max;
  int ranks;
  std::int64_t batch_size;  // 0: it cannot be split
  std::int64_t accumulate;
  int short_ranks;
};

TEST(SplitImages, IsEvenWhereItCanBeAndElseNearlySo) {
  for (const Case& of : {
           Case{32, 8, 4, 8, 1, 0},           // the ranks divide it
           Case{32, 8, 2, 8, 2, 0},           //
           Case{32, 0, 2, 16, 1, 0},          //
           Case{24, 8, 3, 8, 1, 0},           //
           Case{40, 8, 2, 5, 4, 0},           // not 8: 24 and 16 images are further apart
           Case{32, 8, 3, 4, 3, 1},           // 12, 12, 8: 1.125 of the mean; not 16, 8, 8
           Case{32, 0, 3, 4, 3, 1},           //
           Case{1024, 256, 3, 128, 3, 1},     //
           Case{1024, 64, 12, 32, 3, 4},      //
           Case{1024, 256, 31, 8, 5, 27},     // 40: 1.21 of the mean; of 16 they would be 48
           Case{20, 5, 4, 5, 1, 0},           //
           Case{50, 8, 4, 5, 3, 2},           // 15 is 1.2 of 12.5
           Case{32, 0, 5, 4, 2, 2},           // 8 is 1.25 of 6.4, the most that is taken
           Case{3, 0, 2, 1, 2, 1},            // nothing is better than 2 of 1.5
           Case{74, 16, 2, 2, 19, 1},         // even would be 37 batches of 1
           Case{1, 0, 1, 1, 1, 0},            //
           Case{37, 16, 4, 0, 0, 0},          // in batches of 1 alone, below an eighth of 9
           Case{3, 8, 4, 0, 0, 0},            // fewer images than ranks
           Case{16777213, 1000, 7, 0, 0, 0},  // a prime number
       }) {
    SCOPED_TRACE(testing::Message() << of.images << " by " << of.ranks << " of at most " << of.max);
    const auto split = SplitImages(of.images, of.max, of.ranks);
    ASSERT_EQ(split.has_value(), of.batch_size > 0);
    if (!split) continue;
    EXPECT_EQ(*split, (GlobalBatch{of.batch_size, of.ranks, of.accumulate, of.short_ranks, true}));
    EXPECT_EQ(split->images(), of.images);
  }
}

TEST(SplitImages, KeepsItsPromisesForAnyNumbers) {
  for (std::int64_t images = 1; images <= 200; ++images) {
    for (int ranks = 1; ranks <= 17; ++ranks) {
      for (const std::int64_t max : {0, 1, 3, 8, 50}) {
        const auto split = SplitImages(images, max, ranks);
        if (!split) continue;
        SCOPED_TRACE(testing::Message() << images << " by " << ranks << " of at most " << max);
        EXPECT_EQ(split->images(), images);
        EXPECT_TRUE(max == 0 || split->batch_size <= max);
        EXPECT_GE(split->short_ranks, 0);
        EXPECT_LT(split->short_ranks, ranks);
        EXPECT_GE(split->batches_of(ranks - 1), 1);
        std::int64_t batches = 0;
        for (int rank = 0; rank < ranks; ++rank) batches += split->batches_of(rank);
        EXPECT_EQ(batches, split->batches());
      }
    }
  }
}

TEST(GlobalBatch, IsDescribedByItsSplit) {
  EXPECT_EQ(DescribeSplit({16, 1}), "1 rank x 16");
  EXPECT_EQ(DescribeSplit({16, 2, 4}), "2 ranks x 4 batches x 16");
  EXPECT_EQ(DescribeSplit({4, 3, 3, 1}), "8 batches of 4 over 3 ranks");
}

constexpr std::int64_t kEndless = std::int64_t{1} << 60;

// A ring whose item i of step s is the number 100 s + i, plus what the last Seek has told.
class Numbers {
 public:
  explicit Numbers(Prefetcher::Options options)
      : items_(static_cast<std::size_t>(options.items)),
        values_(static_cast<std::size_t>(options.slots) * items_),
        prefetcher_(options, [this](std::int64_t step, int slot, std::int64_t item, int) {
          if (step == bad_step_ && item >= bad_item_) {
            throw std::runtime_error("item " + std::to_string(item));
          }
          ++under_way_;
          values_[static_cast<std::size_t>(slot) * items_ + static_cast<std::size_t>(item)] =
              100 * step + item + logged_;
          ++made_;
          --under_way_;
        }) {}

  // The step and a check of its items; -1 at the end.
  std::int64_t Next() {
    const int slot = prefetcher_.Next();
    if (slot < 0) return -1;
    for (std::size_t i = 0; i < items_; ++i) {
      EXPECT_EQ(values_[static_cast<std::size_t>(slot) * items_ + i],
                100 * prefetcher_.step() + static_cast<std::int64_t>(i) + logged_);
    }
    return prefetcher_.step();
  }
  void Seek(std::int64_t step) {
    prefetcher_.Seek(step, [this, step] {
      EXPECT_EQ(under_way_, 0);
      logged_ = 7 * step;
    });
  }
  std::int64_t made() const { return made_; }

  std::atomic<std::int64_t> bad_step_ = -1;
  std::atomic<std::int64_t> bad_item_ = 0;

 private:
  std::size_t items_;
  std::vector<std::int64_t> values_;
  std::int64_t logged_ = 0;  // not atomic: nothing is made when it changes
  std::atomic<int> under_way_ = 0;
  std::atomic<std::int64_t> made_ = 0;
  Prefetcher prefetcher_;
};

TEST(Prefetcher, GivesAllStepsInOrder) {
  for (const int threads : {1, 4}) {
    for (const int slots : {2, 3, 5}) {
      Numbers numbers({.threads = threads, .slots = slots, .items = 7, .end = 50});
      for (std::int64_t step = 0; step < 50; ++step) ASSERT_EQ(numbers.Next(), step);
      EXPECT_EQ(numbers.Next(), -1);
      EXPECT_EQ(numbers.Next(), -1);
      EXPECT_EQ(numbers.made(), 350);
    }
  }
}

TEST(Prefetcher, SeeksForthAndBack) {
  Numbers numbers({.threads = 3, .slots = 3, .items = 5, .end = kEndless});
  for (const std::int64_t target : {0, 1000, 3, 4, 77}) {
    numbers.Seek(target);
    for (std::int64_t step = target; step < target + 4; ++step) ASSERT_EQ(numbers.Next(), step);
  }
}

TEST(Prefetcher, StaysWithinItsSlots) {
  Numbers numbers({.threads = 4, .slots = 3, .items = 2, .end = kEndless});
  for (std::int64_t step = 0; step < 20; ++step) {
    numbers.Next();
    EXPECT_LE(numbers.made(), (step + 3) * 2);  // this batch and two ahead
  }
}

TEST(Prefetcher, ThrowsTheFirstItemsErrorInItsTurn) {
  Numbers numbers({.threads = 4, .slots = 3, .items = 8, .end = kEndless});
  numbers.bad_item_ = 3;
  numbers.bad_step_ = 4;
  numbers.Seek(0);
  for (std::int64_t step = 0; step < 4; ++step) ASSERT_EQ(numbers.Next(), step);
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(tests::Rejection<std::runtime_error>([&] { numbers.Next(); }), "item 3");
  }
  numbers.bad_step_ = -1;
  numbers.Seek(4);
  EXPECT_EQ(numbers.Next(), 4);
}

TEST(Prefetcher, EndsWhileItemsAreUnderWay) {
  for (int i = 0; i < 50; ++i) {
    Numbers numbers({.threads = 4, .slots = 4, .items = 16, .end = kEndless});
    if (i % 2 == 0) numbers.Next();
  }
}

TEST(Prefetcher, EndsTheThreadsItHasWhereOneCannotBeHad) {
  EXPECT_EXIT(WithFewThreads([] {
                try {
                  const Numbers numbers({.threads = 1000, .slots = 3, .items = 5, .end = kEndless});
                } catch (const Error& error) {
                  return error.exit_code() == EX_OSERR &&
                         std::string(error.what()).starts_with("cannot start input thread ");
                }
                return false;
              }),
              testing::ExitedWithCode(0), "");
}

TEST(ParallelFor, DoesWithTheThreadsThatItGets) {
  EXPECT_EXIT(WithFewThreads([] {
                std::atomic<int> calls = 0;
                ParallelFor(1000, 2000, [&](std::int64_t) { ++calls; });
                return calls == 2000;
              }),
              testing::ExitedWithCode(0), "");
}

TEST(ParallelFor, CallsEachIndexOnce) {
  std::vector<std::atomic<int>> calls(100);
  ParallelFor(4, 100, [&](std::int64_t i) { ++calls[static_cast<std::size_t>(i)]; });
  for (const auto& count : calls) EXPECT_EQ(count, 1);
  ParallelFor(4, 0, [](std::int64_t) { FAIL(); });
}

TEST(ParallelFor, ThrowsTheErrorOfTheSmallestIndex) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    EXPECT_EQ(tests::Rejection<std::runtime_error>([&] {
                ParallelFor(4, 100, [](std::int64_t i) {
                  if (i >= 10) throw std::runtime_error(std::to_string(i));
                });
              }),
              "10");
  }
}

TEST(Prefetcher, TellsWhenEachItemWasMadeAndByWhichThread) {
  SpanRecorder spans(100);
  spans.Start();
  {
    Numbers numbers({.threads = 2, .slots = 2, .items = 3, .end = 4, .spans = &spans});
    while (numbers.Next() >= 0) {
    }
  }
  std::map<std::int64_t, int> items;  // by step, from 1
  for (const Span& span : spans.Spans()) {
    EXPECT_EQ(span.kind, SpanKind::kImage);
    EXPECT_GE(span.thread, 0);
    EXPECT_LT(span.thread, 2);
    EXPECT_LE(span.begin, span.end);
    ++items[span.number];
  }
  EXPECT_EQ(items, (std::map<std::int64_t, int>{{1, 3}, {2, 3}, {3, 3}, {4, 3}}));
}

std::vector<std::uint8_t> FirstPixels(const SyntheticDataLoaderOptions& options) {
  const auto source = MakeSyntheticDataLoader(options);
  HostBatch batch;
  EXPECT_TRUE(source->Next(batch));
  return {batch.pixels.begin(), batch.pixels.end()};
}

TEST(SyntheticDataLoader, PixelsAreATruncatedNormalDistribution) {
  const auto pixels = FirstPixels({.batch_size = 4, .image_size = 64});
  double sum = 0;
  double squares = 0;
  for (const std::uint8_t pixel : pixels) {
    sum += pixel;
    squares += static_cast<double>(pixel) * pixel;
  }
  const double mean = sum / static_cast<double>(pixels.size());
  EXPECT_NEAR(mean, 127, 1);
  // Cut at two deviations, a normal distribution's deviation shrinks by 0.8796.
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(pixels.size()) - mean * mean), 52.8, 1);
  EXPECT_EQ(*std::ranges::min_element(pixels), 7);
  EXPECT_EQ(*std::ranges::max_element(pixels), 247);
}

TEST(SyntheticDataLoader, LabelsAreClasses) {
  const auto source = MakeSyntheticDataLoader({.batch_size = 64, .image_size = 2, .classes = 3});
  HostBatch batch;
  ASSERT_TRUE(source->Next(batch));
  EXPECT_THAT(batch.labels, AllOf(Each(AllOf(::testing::Ge(0), ::testing::Lt(3))), Contains(2)));
}

TEST(SyntheticDataLoader, TwoRanksSeeWhatOneWithTwiceTheBatchSees) {
  const auto one = FirstPixels({.batch_size = 4, .image_size = 8});
  auto two = FirstPixels({.batch_size = 2, .image_size = 8, .world_size = 2});
  const auto other = FirstPixels({.batch_size = 2, .image_size = 8, .rank = 1, .world_size = 2});
  two.insert(two.end(), other.begin(), other.end());
  EXPECT_EQ(one, two);
}

TEST(SyntheticDataLoader, TrainingGivesTheSameBatchAtEachStep) {
  const auto source = MakeSyntheticDataLoader({.batch_size = 2, .image_size = 8});
  source->Seek({41, 82});
  HostBatch batch;
  ASSERT_TRUE(source->Next(batch));
  EXPECT_EQ(batch.step, 41);
  EXPECT_EQ(batch.valid, 2);
  const std::vector<std::uint8_t> before(batch.pixels.begin(), batch.pixels.end());
  ASSERT_TRUE(source->Next(batch));
  EXPECT_EQ(batch.step, 42);
  EXPECT_TRUE(std::ranges::equal(before, batch.pixels));
}

TEST(SyntheticDataLoader, BatchesAreInTheMemoryThatItIsGiven) {
  const std::byte* given = nullptr;
  const auto allocate = [&](std::size_t bytes) {
    Buffer buffer = AllocateOrdinaryMemory(bytes);
    given = buffer.data();
    return buffer;
  };
  const auto source =
      MakeSyntheticDataLoader({.batch_size = 2, .image_size = 8, .allocate = allocate});
  HostBatch batch;
  ASSERT_TRUE(source->Next(batch));
  EXPECT_EQ(reinterpret_cast<const std::byte*>(batch.pixels.data()), given);
}

TEST(SyntheticDataLoader, EvaluationEnds) {
  const auto source = MakeSyntheticDataLoader({.batch_size = 2,
                                               .image_size = 8,
                                               .rank = 1,
                                               .world_size = 2,
                                               .training = false,
                                               .samples = 7});
  HostBatch batch;
  ASSERT_TRUE(source->Next(batch));
  EXPECT_EQ(batch.valid, 2);
  ASSERT_TRUE(source->Next(batch));
  EXPECT_EQ(batch.valid, 1);
  EXPECT_FALSE(source->Next(batch));
}

}  // namespace
}  // namespace trainer
