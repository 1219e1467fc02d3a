// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/jpeg.h"

#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <cctype>
#include <csetjmp>
#include <cstddef>
#include <cstdio>  // jpeglib.h needs FILE
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/core/error.h"

namespace trainer {
namespace {

// How jpeg_entropy_decoder begins in jpegint.h, which few systems install: the same in libjpeg
// since version 6 and in each libjpeg-turbo (doc/decisions/0045).
struct StartOfEntropyDecoder {
  void (*start_pass)(j_decompress_ptr jpeg);
  boolean (*decode_mcu)(j_decompress_ptr jpeg, JBLOCKROW* blocks);
};
constexpr bool kKnowsEntropyDecoder = LIBJPEG_TURBO_VERSION_NUMBER < 4'000'000;

// Thrown where JpegUnits cannot go on: perhaps libjpeg can.
struct UnitsGiveUp {};

}  // namespace

// libjpeg reports errors by a call that must not return, and is C: so by longjmp.  Guarded() is the
// only place with a setjmp; what runs in it holds no object with a destructor.
struct JpegDecoder::State {
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  jpeg_decompress_struct jpeg{};
  std::jmp_buf escape{};
  char message[JMSG_LENGTH_MAX]{};
  std::vector<std::uint8_t> cmyk_row;
  std::span<const std::uint8_t> data;
  JpegUnits units;
  bool units_give_up = false;

  template <typename Body>
  void Guarded(Body body) {
    if (setjmp(escape) != 0) {
      jpeg_abort_decompress(&jpeg);
      if (std::exchange(units_give_up, false)) throw UnitsGiveUp();
      throw Error(EX_DATAERR, std::string("cannot decode the JPEG image: ") + message);
    }
    body();
  }

  static State& Of(j_common_ptr common) { return *static_cast<State*>(common->client_data); }

  [[noreturn]] static void OnError(j_common_ptr common) {
    State& state = Of(common);
    state.errors.format_message(common, state.message);
    std::longjmp(state.escape, 1);
  }

  // Negative levels are warnings.  Stray bytes between markers and odd version numbers lose no
  // pixel; every other warning means that pixels were lost.
  static void OnMessage(j_common_ptr common, int level) {
    const int code = common->err->msg_code;
    if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR &&
        code != JWRN_ADOBE_XFORM && code != JWRN_BOGUS_ICC) {
      OnError(common);
    }
  }

  static boolean OnUnit(j_decompress_ptr jpeg, JBLOCKROW* blocks) {
    State& state = *static_cast<State*>(jpeg->client_data);
    if (!state.units.Next(blocks)) {
      state.units_give_up = true;
      std::longjmp(state.escape, 1);
    }
    return TRUE;
  }

  // Has `units` read what libjpeg would, if it can.
  bool TakeUnits(ColumnRange wanted) {
    if (!kKnowsEntropyDecoder || !units.Start(jpeg, wanted)) return false;
    reinterpret_cast<StartOfEntropyDecoder*>(jpeg.entropy)->decode_mcu = OnUnit;
    return true;
  }

  static void OnProgress(j_common_ptr common) {
    const auto* jpeg = reinterpret_cast<j_decompress_ptr>(common);
    const std::int64_t pixels = std::int64_t{jpeg->image_width} * jpeg->image_height;
    const std::int64_t max_scans = MaxJpegScans(pixels);
    if (jpeg->input_scan_number <= max_scans) return;
    State& state = Of(common);
    std::snprintf(state.message, sizeof(state.message), "more than %d scans of %lld pixels",
                  static_cast<int>(max_scans), static_cast<long long>(pixels));
    std::longjmp(state.escape, 1);
  }
};

namespace {

// By what they begin with, from some byte on.
struct ImageKind {
  std::size_t offset;
  std::string_view bytes;
  const char* name;
};
constexpr ImageKind kOtherKinds[] = {
    {0, "\x89PNG\n", "a PNG image whose ends of lines were changed, as of a text: get it anew"},
    {0, "\x89PNG\r\r", "a PNG image whose ends of lines were changed, as of a text: get it anew"},
    {0, "\x89PNG", "a PNG image"},
    {0, "GIF8", "a GIF image"},
    {0, "RIFF", "a WebP image or another RIFF file"},
    {0, "BM", "a BMP image"},
    {0, std::string_view("II*\0", 4), "a TIFF image"},
    {0, std::string_view("MM\0*", 4), "a TIFF image"},
    {4, "ftypavif", "an AVIF image"},
    {4, "ftyphei", "a HEIC image"},
    {4, "ftypmif1", "a HEIC image"},
    {4, "JXL ", "a JPEG XL image"},
    {0, "\xff\x0a", "a JPEG XL image"},
    {4, "jP  ", "a JPEG 2000 image"},
    {0, "%PDF", "a PDF file"},
    {0, "icns", "an icon of macOS"},
    {0, std::string_view("\0\0\1\0", 4), "an icon of Windows"},
    {0, "\x1f\x8b", "compressed: unpack it with gunzip"},
    {0, "BZh", "compressed: unpack it with bunzip2"},
    {0,
     "\xfd"
     "7zXZ",
     "compressed: unpack it with unxz"},
    {0, "\x28\xb5\x2f\xfd", "compressed: unpack it with unzstd"},
    {0, "PK\x03\x04", "a ZIP archive: unpack it with unzip"},
    {0, "version https://", "a pointer of Git LFS: git lfs pull gets the image"},
};

// "is a PNG image", "begins with \"Hello\"": for data that has not JPEG's first two bytes.
std::string DescribeOther(std::span<const std::uint8_t> data) {
  if (data.empty()) return "is empty";
  const std::string start(data.begin(),
                          data.begin() + std::min<std::ptrdiff_t>(16, std::ssize(data)));
  for (const ImageKind& kind : kOtherKinds) {
    const std::string_view rest =
        std::string_view(start).substr(std::min(kind.offset, start.size()));
    if (rest.starts_with(kind.bytes)) return std::string("is ") + kind.name;
  }
  const bool is_text = std::all_of(start.begin(), start.end(), [](char c) {
    return std::isprint(static_cast<unsigned char>(c)) != 0 || c == '\n' || c == '\t';
  });
  if (is_text) return "is text that begins with \"" + start.substr(0, start.find('\n')) + "\"";
  return "does not begin with the bytes ff d8";
}

// Adobe's CMYK files store the complement.
void CmykToRgb(const std::uint8_t* cmyk, int width, bool inverted, std::uint8_t* rgb) {
  const int flip = inverted ? 0 : 255;
  for (int i = 0; i < width; ++i, cmyk += 4) {
    for (int channel = 0; channel < 3; ++channel) {
      *rgb++ = static_cast<std::uint8_t>((cmyk[channel] ^ flip) * (cmyk[3] ^ flip) / 255);
    }
  }
}

}  // namespace

JpegDecoder::JpegDecoder(EntropyDecoder entropy_decoder)
    : state_(std::make_unique<State>()), entropy_decoder_(entropy_decoder) {
  State& state = *state_;
  jpeg_std_error(&state.errors);
  state.errors.error_exit = State::OnError;
  state.errors.emit_message = State::OnMessage;
  state.progress.progress_monitor = State::OnProgress;
  state.jpeg.err = &state.errors;
  state.jpeg.client_data = &state;
  state.Guarded([&] { jpeg_create_decompress(&state.jpeg); });
  state.jpeg.progress = &state.progress;
  state.jpeg.mem->max_memory_to_use = kMaxJpegMemoryBytes;
}

JpegDecoder::~JpegDecoder() { jpeg_destroy_decompress(&state_->jpeg); }

ImageSize JpegDecoder::ReadHeader(std::span<const std::uint8_t> data) {
  if (data.size() < 2 || data[0] != 0xff || data[1] != 0xd8) {
    throw Error(EX_DATAERR, "the image is not a JPEG file: it " + DescribeOther(data));
  }
  State& state = *state_;
  state.data = data;
  state.Guarded([&] {
    jpeg_abort_decompress(&state.jpeg);
    jpeg_mem_src(&state.jpeg, data.data(), data.size());
    jpeg_read_header(&state.jpeg, TRUE);
  });
  const std::int64_t width = state.jpeg.image_width;
  const std::int64_t height = state.jpeg.image_height;
  if (width * height > kMaxJpegPixels) {
    throw Error(EX_DATAERR, "the JPEG image is too large: " + std::to_string(width) + " x " +
                                std::to_string(height) + " pixels, at most " +
                                std::to_string(kMaxJpegPixels) + " are decoded");
  }
  return {static_cast<int>(width), static_cast<int>(height)};
}

bool JpegDecoder::is_cmyk() const {
  const J_COLOR_SPACE space = state_->jpeg.jpeg_color_space;
  return space == JCS_CMYK || space == JCS_YCCK;
}

void JpegDecoder::Decode(int reduction, const PixelBox& box, ImagePiece& piece) {
  try {
    DecodeBy(entropy_decoder_, reduction, box, piece);
  } catch (const UnitsGiveUp&) {
    ReadHeader(state_->data);
    DecodeBy(EntropyDecoder::kLibrary, reduction, box, piece);
  }
}

void JpegDecoder::DecodeBy(EntropyDecoder entropy_decoder, int reduction, const PixelBox& box,
                           ImagePiece& piece) {
  // Upsampling of the colours makes the outermost pixels of a partial row differ from those of the
  // whole; two more on each side keep that away from `box`.
  constexpr int kMargin = 2;
  State& state = *state_;
  jpeg_decompress_struct& jpeg = state.jpeg;
  state.Guarded([&] {
    jpeg.out_color_space = is_cmyk() ? JCS_CMYK : JCS_RGB;
    jpeg.scale_num = 1;
    jpeg.scale_denom = static_cast<unsigned>(reduction);
    jpeg_start_decompress(&jpeg);
  });
  const auto full_width = static_cast<int>(jpeg.output_width);
  const auto full_height = static_cast<int>(jpeg.output_height);
  DDL_CHECK(box.x >= 0 && box.width > 0 && box.x + box.width <= full_width);
  DDL_CHECK(box.y >= 0 && box.height > 0 && box.y + box.height <= full_height);
  const int left = std::max(box.x - kMargin, 0);
  const int right = std::min(box.x + box.width + kMargin, full_width);
  const int top = std::max(box.y - kMargin, 0);
  const int bottom = box.y + box.height;

  JDIMENSION x = static_cast<JDIMENSION>(left);
  JDIMENSION width = static_cast<JDIMENSION>(right - left);
  state.Guarded([&] {
    if (right - left < full_width) jpeg_crop_scanline(&jpeg, &x, &width);
  });
  used_library_ = entropy_decoder == EntropyDecoder::kLibrary || !state.TakeUnits({x, width});
  piece.box = {static_cast<int>(x), top, static_cast<int>(width), bottom - top};
  piece.pixels.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(bottom - top) * 3);
  state.cmyk_row.resize(jpeg.out_color_space == JCS_CMYK ? std::size_t{width} * 4 : 0);

  state.Guarded([&] {
    if (top > 0) jpeg_skip_scanlines(&jpeg, static_cast<JDIMENSION>(top));
    std::uint8_t* row = piece.pixels.data();
    for (int y = top; y < bottom; ++y, row += std::size_t{width} * 3) {
      JSAMPROW target = state.cmyk_row.empty() ? row : state.cmyk_row.data();
      jpeg_read_scanlines(&jpeg, &target, 1);
      if (!state.cmyk_row.empty()) {
        CmykToRgb(target, static_cast<int>(width), jpeg.saw_Adobe_marker != 0, row);
      }
    }
    jpeg_abort_decompress(&jpeg);
  });
}

namespace {

// The two interfaces of libjpeg-turbo: libjpeg 6.2 and, on Ubuntu and SUSE, libjpeg 8.
#if JPEG_LIB_VERSION >= 70
int ScaledSize(const jpeg_component_info& component) { return component.DCT_h_scaled_size; }
int SmallestScaledSize(const jpeg_decompress_struct& jpeg) { return jpeg.min_DCT_h_scaled_size; }
#else
int ScaledSize(const jpeg_component_info& component) { return component.DCT_scaled_size; }
int SmallestScaledSize(const jpeg_decompress_struct& jpeg) { return jpeg.min_DCT_scaled_size; }
#endif

static_assert(kMaxUnitBlocks == D_MAX_BLOCKS_IN_MCU && kMaxComponents == MAX_COMPS_IN_SCAN &&
              kMaxComponents == NUM_HUFF_TBLS);

bool IsSequential(const jpeg_decompress_struct& jpeg) {
  // Scans of progressive and of lossless images have something else there.
  const bool has_whole_blocks = jpeg.Ss == 0 && jpeg.Se == DCTSIZE2 - 1;
  return has_whole_blocks && jpeg.arith_code == 0 && jpeg.data_precision == 8 &&
         jpeg.comps_in_scan == jpeg.num_components;
}

bool CodesOf(const JHUFF_TBL* const (&tables)[NUM_HUFF_TBLS], int number, HuffmanCodes& codes) {
  if (number < 0 || number >= NUM_HUFF_TBLS || tables[number] == nullptr) return false;
  std::copy_n(tables[number]->bits + 1, codes.counts.size(), codes.counts.begin());
  std::copy_n(tables[number]->huffval, codes.symbols.size(), codes.symbols.begin());
  return true;
}

}  // namespace

bool JpegUnits::Start(const jpeg_decompress_struct& jpeg, ColumnRange wanted) {
  if (!IsSequential(jpeg)) return false;
  for (int i = 0; i < jpeg.comps_in_scan; ++i) {
    const jpeg_component_info& component = *jpeg.cur_comp_info[i];
    HuffmanCodes dc;
    HuffmanCodes ac;
    if (!CodesOf(jpeg.dc_huff_tbl_ptrs, component.dc_tbl_no, dc) ||
        !CodesOf(jpeg.ac_huff_tbl_ptrs, component.ac_tbl_no, ac) ||
        !decoder_.SetDcTable(component.dc_tbl_no, dc) ||
        !decoder_.SetAcTable(component.ac_tbl_no, ac)) {
      return false;
    }
  }
  for (int i = 0; i < jpeg.blocks_in_MCU; ++i) {
    const int number = jpeg.MCU_membership[i];
    const jpeg_component_info& component = *jpeg.cur_comp_info[number];
    blocks_[static_cast<std::size_t>(i)] = {.component = number,
                                            .dc_table = component.dc_tbl_no,
                                            .ac_table = component.ac_tbl_no,
                                            .is_dc_only = ScaledSize(component) == 1};
  }
  decoder_.Start({jpeg.src->next_input_byte, jpeg.src->bytes_in_buffer},
                 std::span(blocks_).first(static_cast<std::size_t>(jpeg.blocks_in_MCU)),
                 static_cast<int>(jpeg.restart_interval));

  columns_ = jpeg.MCUs_per_row;
  column_ = 0;
  first_wanted_ = 0;
  end_of_wanted_ = columns_;
  if (jpeg.comps_in_scan > 1) {  // otherwise a unit is a block, whatever the sampling factors say
    const auto unit_width =
        static_cast<unsigned>(jpeg.max_h_samp_factor * SmallestScaledSize(jpeg));
    first_wanted_ = wanted.first / unit_width;
    end_of_wanted_ = (wanted.first + wanted.width + unit_width - 1) / unit_width;
  }
  return true;
}

bool JpegUnits::Next(CoefficientBlock* const* blocks) {
  const bool is_wanted = column_ >= first_wanted_ && column_ < end_of_wanted_;
  column_ = column_ + 1 == columns_ ? 0 : column_ + 1;
  return blocks != nullptr && is_wanted ? decoder_.Read(blocks) : decoder_.Skip();
}

}  // namespace trainer
