// SPDX-License-Identifier: Apache-2.0

#include "bench/report/charts/printable.h"
#include "bench/report/charts/svg_chart.h"
#include "tests/support/test.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

std::vector<std::string> TextsOf(const Axis& axis) {
  std::vector<std::string> texts;
  for (const double tick : axis.Ticks()) texts.push_back(TickText(axis, tick));
  return texts;
}

TEST(RoundAxis, HasRoundTicksAroundAllValues) {
  EXPECT_THAT(TextsOf(RoundAxis(0, 100, 5)), ElementsAre("0", "20", "40", "60", "80", "100"));
  EXPECT_THAT(TextsOf(RoundAxis(3, 98, 5)), ElementsAre("0", "20", "40", "60", "80", "100"));
  EXPECT_THAT(TextsOf(RoundAxis(0.11, 0.34, 5)),
              ElementsAre("0.10", "0.15", "0.20", "0.25", "0.30", "0.35"));
  EXPECT_THAT(TextsOf(RoundAxis(-3, 4, 4)), ElementsAre("-4", "-2", "0", "2", "4"));
  EXPECT_THAT(TextsOf(RoundAxis(0, 25000, 5)), ElementsAre("0", "5k", "10k", "15k", "20k", "25k"));
}

TEST(RoundAxis, OfWholeNumbersHasNoneBetween) {
  EXPECT_THAT(TextsOf(RoundAxis(1, 2, 5, /*is_whole=*/true)), ElementsAre("1", "2"));
}

TEST(RoundAxis, WidensOneValue) {
  EXPECT_THAT(TextsOf(RoundAxis(0, 0, 5)), ElementsAre("0.0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  const Axis axis = RoundAxis(50, 50, 5);
  EXPECT_LT(axis.low, 50);
  EXPECT_GT(axis.high, 50);
  // Closer than the digits of a double tell apart.
  EXPECT_LE(RoundAxis(1e15, 1e15 + 1, 5).Ticks().size(), 12U);
}

TEST(RoundAxis, PlacesInProportion) {
  const Axis axis = RoundAxis(0, 10, 5);
  EXPECT_EQ(axis.Place(0, 200), 0);
  EXPECT_EQ(axis.Place(5, 200), 100);
  EXPECT_EQ(axis.Place(10, 200), 200);
}

TEST(RoundAxis, RejectsWhatIsNoRange) {
  EXPECT_THROW(RoundAxis(1, 0, 5), trainer::Error);
  EXPECT_THROW(RoundAxis(0, 1.0 / 0.0, 5), trainer::Error);
}

TEST(Printable, KeepsTextAndReplacesTheRest) {
  EXPECT_EQ(Printable("plain, caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x9A\x80"),
            "plain, caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x9A\x80");
  EXPECT_EQ(Printable("caf\xE9!"), "caf\xEF\xBF\xBD!");
  EXPECT_EQ(Printable("half \xE2\x82"), "half \xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(Printable("a\x1B[2Jb\nc\x7F"), "a [2Jb c ");
  EXPECT_EQ(Printable("a\xC2\x9B"
                      "b"),
            "a b");  // C1: CSI in one letter
  EXPECT_EQ(Printable("a\xE2\x80\xAE"
                      "b\xE2\x81\xA6"),
            "a b ");  // writes from the right
  EXPECT_EQ(Printable(""), "");
}

TEST(CountChars, CountsLettersNotBytes) {
  EXPECT_EQ(CountChars("caf\xC3\xA9"), 4U);
  EXPECT_EQ(CountChars(""), 0U);
}

TEST(Shortened, KeepsBothEnds) {
  EXPECT_EQ(Shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(Shortened("abcdefg", 6),
            "ab\xE2\x80\xA6"
            "efg");
  EXPECT_EQ(Shortened("abcdefg", 3), "a\xE2\x80\xA6g");
  EXPECT_EQ(Shortened("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 3),
            "\xC3\xA9\xE2\x80\xA6\xC3\xA9");
}

TEST(FourDigits, HasFourThatCountAndNoExponent) {
  EXPECT_EQ(FourDigits(0), "0");
  EXPECT_EQ(FourDigits(0.0123449), "0.01234");
  EXPECT_EQ(FourDigits(-1.5), "-1.500");
  EXPECT_EQ(FourDigits(12.345), "12.35");
  EXPECT_EQ(FourDigits(123456.7), "123457");
  EXPECT_EQ(FourDigits(std::numeric_limits<double>::quiet_NaN()), "-");
}

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(Escaped, IsHarmlessInTextAndAttributes) {
  EXPECT_EQ(Escaped("<script a=\"b\">'&'\x01\xFF"),
            "&lt;script a=&quot;b&quot;&gt;&#39;&amp;&#39; \xEF\xBF\xBD");
}

TEST(SeriesClass, TellsManyApart) {
  EXPECT_EQ(SeriesClass(0), "s0 d0");
  EXPECT_EQ(SeriesClass(9), "s1 d1");
  EXPECT_EQ(SeriesClass(23), "s7 d2");
  EXPECT_EQ(SeriesClass(24), "s0 d0");
}

LineChart Lines() {
  LineChart chart = {"step", "images/s", true, true, {}};
  chart.series.push_back({"a", {{0, 0, 0, 0}, {10, 100, 90, 110}, {5, 50, 50, 50}}, false});
  chart.series.push_back({"<b>", {{0, 20, 20, 20}}, true});
  return chart;
}

TEST(SvgOf, LinesLieWhereTheirAxesSay) {
  const std::string svg = SvgOf(Lines(), "speed", "Speed & <loss>");
  EXPECT_THAT(svg, HasSubstr("<svg id=\"speed\""));
  EXPECT_THAT(svg, HasSubstr("<title id=\"speed-title\">Speed &amp; &lt;loss&gt;</title>"));
  // From (56, 232) to (400, 30): x from 0 to 10, y from 0 to 150.
  EXPECT_THAT(svg,
              HasSubstr("class=\"line s0 d0\" d=\"M56.00 232.00L400.00 97.33M228.00 164.67\""));
  EXPECT_THAT(svg, HasSubstr("class=\"line ideal\""));
  EXPECT_EQ(Count(svg, "class=\"band "), 1U);
  EXPECT_EQ(Count(svg, "class=\"point s0 d0\""), 3U);
  EXPECT_THAT(svg, HasSubstr("<title>&lt;b&gt;</title>"));
}

TEST(SvgOf, HasNoPointsOfALongLine) {
  LineChart chart = {"step", "loss", true, false, {}};
  chart.series.push_back({"a", {}, false});
  for (int i = 0; i < 100; ++i) {
    chart.series[0].points.push_back({double(i), 5, 5, 5});
  }
  const std::string svg = SvgOf(chart, "loss", "Loss");
  EXPECT_EQ(Count(svg, "<circle"), 0U);
  EXPECT_EQ(Count(svg, "class=\"line "), 1U);
  EXPECT_EQ(Count(svg, "class=\"band "), 0U);
}

TEST(SvgOf, AnEmptyChartHasAxesAlone) {
  const std::string svg = SvgOf(LineChart{}, "a", "b");
  EXPECT_EQ(Count(svg, "class=\"line "), 0U);
  EXPECT_THAT(svg, HasSubstr("class=\"grid\""));
  EXPECT_THAT(SvgOf(BarChart{}, "a", "b"), HasSubstr("</svg>"));
  EXPECT_THAT(SvgOf(IntervalChart{}, "a", "b"), HasSubstr("</svg>"));
}

TEST(SvgOf, BarsLieEndToEnd) {
  BarChart chart;
  chart.x_label = "ms";
  chart.part_names = {"forward", "backward", "update"};
  chart.rows = {{"rank 0", {10, 0, 30}, "40.00"}, {"rank 1", {5, 5, 5}, "15.00"}};
  const std::string svg = SvgOf(chart, "bars", "Bars");
  EXPECT_EQ(Count(svg, "<rect class=\"bar "), 5U);
  EXPECT_THAT(svg, AllOf(HasSubstr(">40.00</text>"), HasSubstr("rank 1, backward: 5 ms")));
  // 6 letters of 8 and twice 6 on the left, 5 letters and twice 6 on the right; 0 to 40 between.
  EXPECT_THAT(svg, HasSubstr("class=\"bar s0 d0\" x=\"60.00\" y=\"13.00\" width=\"77.00\""));
  EXPECT_THAT(svg, HasSubstr("class=\"bar s2 d0\" x=\"137.00\" y=\"13.00\" width=\"231.00\""));
}

TEST(SvgOf, IntervalsStandAroundTheirPoint) {
  IntervalChart chart{.x_label = "%", .rows = {{"a", 5, 5}, {"b", -10, 0}}};
  const std::string svg = SvgOf(chart, "d", "Differences");
  EXPECT_EQ(Count(svg, "class=\"interval "), 1U);
  EXPECT_EQ(Count(svg, "class=\"point "), 2U);
  EXPECT_EQ(Count(svg, "class=\"zero\""), 1U);
  // 3 letters and twice 6 on the left, 2 and twice 6 on the right; -10 to 10 between.
  EXPECT_THAT(svg, HasSubstr("<circle class=\"point s0\" cx=\"36.00\" cy=\"47.00\""));
  EXPECT_THAT(svg, HasSubstr("M214.00 21.00H392.00"));
}

TEST(LegendOf, NamesWhatThereIsSeveralOf) {
  EXPECT_THAT(LegendOf(Lines()), HasSubstr("key-line s0 d0\" d=\"M1 5H27\"/></svg> a</li>"));
  EXPECT_THAT(LegendOf(Lines()),
              HasSubstr("key-line ideal\" d=\"M1 5H27\"/></svg> &lt;b&gt;</li>"));
  EXPECT_EQ(LegendOf(BarChart{"J", {"energy"}, {}}), "");
  EXPECT_THAT(LegendOf(BarChart{"J", {"a", "b"}, {}}), HasSubstr("s1 d0 wide"));
  EXPECT_EQ(LegendOf(IntervalChart{}), "");
}

}  // namespace
}  // namespace bench
