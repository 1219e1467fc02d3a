// SPDX-License-Identifier: Apache-2.0

#include "ddldata/exif.h"

#include "tests/support/test.h"

namespace trainer {
namespace {

using namespace std::string_literals;

std::string Big(std::uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i) & 255U);
  return text;
}

std::string Little(std::uint32_t value, int bytes) {
  std::string text = Big(value, bytes);
  std::ranges::reverse(text);
  return text;
}

std::string Segment(char marker, const std::string& content) {
  return "\xff"s + marker + Big(static_cast<std::uint32_t>(content.size()) + 2, 2) + content;
}

using Put = std::string (*)(std::uint32_t, int);

// With an entry before it.
std::string Exif(Put put, std::uint32_t orientation, std::uint32_t type = 3) {
  return "Exif\0\0"s + (put == Put(Big) ? "MM" : "II") + put(42, 2) + put(8, 4) + put(2, 2) +
         put(0x010f, 2) + put(2, 2) + put(4, 4) + "abc\0"s +  //
         put(0x0112, 2) + put(type, 2) + put(1, 4) + put(orientation, 2) + put(0, 2) + put(0, 4);
}

int OrientationOf(const std::string& bytes) {
  return ExifOrientation({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

std::string Jpeg(const std::string& segments) {
  return "\xff\xd8"s + segments + Segment('\xda', "scan") + "...\xff\xd9";
}

TEST(ExifOrientation, IsThatOfTheFirstDirectory) {
  const auto app1 = [](const std::string& exif) { return Jpeg(Segment('\xe1', exif)); };
  for (std::uint32_t orientation = 1; orientation <= 8; ++orientation) {
    EXPECT_EQ(OrientationOf(app1(Exif(Big, orientation))), static_cast<int>(orientation));
    EXPECT_EQ(OrientationOf(app1(Exif(Little, orientation))), static_cast<int>(orientation));
  }
  EXPECT_EQ(OrientationOf(Jpeg(Segment('\xe0', "JFIF") + "\xff" + Segment('\xe1', "http://xmp") +
                               Segment('\xe1', Exif(Big, 6)))),
            6);
  EXPECT_EQ(OrientationOf(app1(Exif(Big, 0))), 1);
  EXPECT_EQ(OrientationOf(app1(Exif(Big, 9))), 1);
  EXPECT_EQ(OrientationOf(app1(Exif(Big, 6, 4))), 1);
  EXPECT_EQ(OrientationOf(Jpeg("") + Segment('\xe1', Exif(Big, 6))), 1);
  EXPECT_EQ(OrientationOf(Jpeg(Segment('\xe2', Exif(Big, 6)))), 1);
  EXPECT_EQ(OrientationOf("\x89PNG"), 1);
}

TEST(ExifOrientation, OfWhatIsCutOffIsNotKnown) {
  const std::string whole = "\xff\xd8"s + Segment('\xe1', Exif(Little, 6));
  EXPECT_EQ(OrientationOf(whole), 6);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_EQ(OrientationOf(whole.substr(0, bytes)), 1) << bytes;
  }
  // The segment is whole, and what is in it cut off.
  const std::string exif = Exif(Big, 6);
  const std::size_t behind = exif.size() - 6;  // the value and nothing after it
  for (std::size_t bytes = 0; bytes < exif.size(); ++bytes) {
    EXPECT_EQ(OrientationOf(Jpeg(Segment('\xe1', exif.substr(0, bytes)))), bytes < behind ? 1 : 6);
  }
  std::string far = exif;
  far.replace(10, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(OrientationOf(Jpeg(Segment('\xe1', far))), 1);
}

}  // namespace
}  // namespace trainer
