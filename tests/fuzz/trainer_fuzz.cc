// SPDX-License-Identifier: Apache-2.0
//
// Files and messages that ddltraind reads: what is no such thing is refused as damaged data.

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/fuzz/fuzz.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/control/control_message.h"
#include "trainer/control/run_control.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"
#include "trainer/data/example.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/scan_cache.h"
#include "trainer/data/files/tfrecord.h"
#include "trainer/data/images/jpeg.h"

namespace {

using fuzz::Require;
using trainer::Error;
using trainer::kRecordFramingBytes;

[[maybe_unused]] void StoreChecksum(std::span<const std::uint8_t> data, std::uint8_t* target) {
  const std::uint32_t checksum = trainer::MaskedCrc32c(std::as_bytes(data));
  std::memcpy(target, &checksum, sizeof(checksum));
}

[[maybe_unused]] void MendChecksums(std::vector<std::uint8_t>& bytes) {
  for (std::uint64_t offset = 0; bytes.size() - offset >= kRecordFramingBytes;) {
    std::uint8_t* record = bytes.data() + offset;
    StoreChecksum({record, 8}, record + 8);
    std::uint64_t length = 0;
    std::memcpy(&length, record, sizeof(length));
    if (length > bytes.size() - offset - kRecordFramingBytes) return;
    StoreChecksum({record + 12, length}, record + 12 + length);
    offset += length + kRecordFramingBytes;
  }
}

}  // namespace

// A TFRecord file: records that fill it.  The second pass writes good checksums over the bytes
// first, so that lengths reach the code behind the checks.
FUZZ(tfrecord) {
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  for (const bool is_mended : {false, true}) {
    if (is_mended) MendChecksums(bytes);
    const trainer::RecordFile file(fuzz::MemoryFile(bytes), true);
    std::vector<std::uint8_t> buffer;
    fuzz::MayBeDamaged<Error>("", [&] {
      std::uint64_t end = 0;
      for (const trainer::RecordPlace& place : file.Scan()) {
        Require(place.offset == end);
        end += place.size;
        Require(file.Read(place, buffer).size() == place.size - kRecordFramingBytes);
      }
      Require(end == bytes.size());
    });
  }
}

// The index file of a data file of 1000 bytes: records that are read back the same.
FUZZ(record_index) {
  fuzz::MayBeDamaged<Error>("", [&] {
    const auto places = trainer::ParseIndex(text, "index", 1000);
    Require(trainer::ParseIndex(trainer::FormatIndex(places), "index", 1000) == places);
  });
}

// A manifest of data files: the very text that its shards are written as.
FUZZ(shard_manifest) {
  fuzz::MayBeDamaged<Error>("", [&] {
    Require(trainer::FormatShardManifest(trainer::ParseShardManifest(text, "manifest")) == text);
  });
}

// What is kept of a scan: nothing, or files whose records fill them, written as the very same
// bytes.  The second pass writes a good checksum over the bytes first.
FUZZ(scan_file) {
  constexpr char kSet[] = "set";
  constexpr std::size_t kChecksumAt = 17;
  constexpr std::size_t kBehindChecksum = 21;
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  for (const bool is_mended : {false, true}) {
    if (is_mended) {
      if (bytes.size() < kBehindChecksum) return;
      const auto behind = std::span(bytes).subspan(kBehindChecksum);
      const std::uint32_t checksum = trainer::Crc32c(std::as_bytes(behind));
      for (std::size_t i = 0; i < 4; ++i) {
        bytes[kChecksumAt + i] = static_cast<std::uint8_t>(checksum >> (8 * i));
      }
    }
    const auto files = trainer::ParseScans(bytes, kSet);
    if (!files) continue;
    for (const trainer::ScannedFile& file : *files) {
      std::uint64_t end = 0;
      for (const trainer::RecordPlace& place : file.scan.places) {
        Require(place.offset == end && place.size >= kRecordFramingBytes);
        end += place.size;
      }
      Require(end == file.identity.bytes);
    }
    Require(trainer::FormatScans(kSet, *files) == std::string(bytes.begin(), bytes.end()));
  }
}

// A tf.train.Example: an image that is read back the same.
FUZZ(example) {
  fuzz::MayBeDamaged<Error>("", [&] {
    const trainer::ImageExample example = trainer::ParseExample(fuzz::Bytes(text));
    const std::string bytes = trainer::SerializeExample(example);
    const auto again = trainer::ParseExample(fuzz::Bytes(bytes));
    Require(again.encoded == example.encoded && again.label == example.label &&
            again.boxes == example.boxes);
  });
}

namespace {

struct Outcome {
  trainer::ImagePiece piece;
  std::string complaint;

  bool operator==(const Outcome& other) const {
    return piece.box == other.piece.box && piece.pixels == other.piece.pixels &&
           complaint == other.complaint;
  }
};

[[maybe_unused]] void DecodeMiddle(trainer::JpegDecoder& decoder, trainer::ImageSize size,
                                   int reduction, trainer::ImagePiece& piece) {
  const int width = (size.width + reduction - 1) / reduction;
  const int height = (size.height + reduction - 1) / reduction;
  const trainer::PixelBox box{width / 3, height / 3, std::max(1, width / 2),
                              std::max(1, height / 2)};
  decoder.Decode(reduction, box, piece);
  const auto pixels =
      static_cast<std::size_t>(piece.box.width) * static_cast<std::size_t>(piece.box.height);
  Require(piece.box.x <= box.x && piece.box.y <= box.y &&
          piece.box.x + piece.box.width >= box.x + box.width &&
          piece.box.y + piece.box.height >= box.y + box.height &&
          piece.pixels.size() == pixels * 3);
}

[[maybe_unused]] Outcome Decode(trainer::JpegDecoder& decoder, std::string_view text,
                                int reduction) {
  constexpr int kMaxSide = 1024;  // larger images are decoded alike and only slow the search
  Outcome outcome;
  try {
    const trainer::ImageSize image = decoder.ReadHeader(fuzz::Bytes(text));
    if (std::max(image.width, image.height) > kMaxSide) return {};
    DecodeMiddle(decoder, image, reduction, outcome.piece);
  } catch (const Error& error) {
    Require(error.exit_code() == EX_DATAERR);
    outcome = {{}, error.what()};
  }
  return outcome;
}

}  // namespace

// A JPEG image: the pixels that were asked for, at every reduction, the same whoever reads the
// Huffman codes.
FUZZ(jpeg) {
  static trainer::JpegDecoder decoder;
  static trainer::JpegDecoder library(trainer::EntropyDecoder::kLibrary);
  for (const int reduction : {1, 2, 4, 8}) {
    Require(Decode(decoder, text, reduction) == Decode(library, text, reduction));
  }
}

// Every accepted file has tensors that lie inside it, end to end.
FUZZ(safetensors) {
  fuzz::MayReject<Error>([&] {
    const trainer::SafetensorsIndex index =
        trainer::ParseSafetensors(std::as_bytes(fuzz::Bytes(text)), "fuzz");
    std::uint64_t end = 0;
    for (const trainer::TensorEntry& entry : index.tensors) {
      const auto bytes = static_cast<std::uint64_t>(entry.shape.elements()) * SizeOf(entry.dtype);
      Require(entry.begin == end && entry.end == entry.begin + bytes);
      end = entry.end;
    }
    Require(index.data_offset + end == text.size());
  });
}

// The input as a whole file, and as the body behind a checksum that fits: what is accepted reads
// back the same from its own text.
FUZZ(manifest) {
  char checksum[16];
  std::snprintf(checksum, sizeof checksum, "%08x",
                trainer::Crc32c(std::as_bytes(fuzz::Bytes(text))));
  const std::string body(text);
  for (const std::string& file :
       {body, std::string(R"({"crc32c":")") + checksum + R"(","manifest":)" + body + "}"}) {
    fuzz::MayReject<Error>([&] {
      const trainer::Manifest manifest = trainer::ParseManifest(file, "fuzz");
      Require(trainer::ParseManifest(trainer::ToJson(manifest), "again") == manifest);
    });
  }
}

// What a training may be sent, and what ddlctl may be answered or may find in a file: what is no
// message changes nothing.
FUZZ(control_message) {
  const std::string message(text);
  trainer::RunControl control({}, 10);
  control.OnEvent(trainer::RunEvent::kStep);
  std::uint64_t asked_for_stacks = 0;
  control.OnStacks([&] { return ++asked_for_stacks; });
  const trainer::ParsedRequest parsed = trainer::ParseRequest(message);
  Require(parsed.request.has_value() == parsed.problem.empty());
  if (parsed.request) {
    const auto again = trainer::ParseRequest(trainer::FormatRequest(*parsed.request));
    Require(again.request && again.request->command == parsed.request->command &&
            again.request->display_every == parsed.request->display_every);
    control.Take(*parsed.request);
  }
  const trainer::Requests wishes = control.Look();
  Require(parsed.request.has_value() || !(wishes.stop || wishes.save || wishes.pause));
  Require(control.display_every() >= 1);
  Require((asked_for_stacks == 1) ==
          (parsed.request && parsed.request->command == trainer::ControlCommand::kStacks));
  fuzz::MayReject<Error>([&] {
    const std::string answer = trainer::FormatAnswer(trainer::ParseAnswer(message));
    Require(answer.find('\n') == std::string::npos);
    Require(trainer::FormatAnswer(trainer::ParseAnswer(answer)) == answer);
  });
  fuzz::MayReject<Error>([&] {
    const std::string address = trainer::FormatAddress(trainer::ParseAddress(message));
    Require(trainer::FormatAddress(trainer::ParseAddress(address)) == address);
  });
}
