// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/jpeg_units.h"

#include <jpeglib.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>  // jpeglib.h needs FILE
#include <span>

namespace trainer {
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
