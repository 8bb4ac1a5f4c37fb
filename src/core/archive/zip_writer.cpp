// SPDX-License-Identifier: Apache-2.0
#include "core/archive/zip_writer.h"

#include <unistd.h>

#include <cerrno>
#include <concepts>

#include "core/archive/crc32.h"
#include "core/archive/zip_format.h"
#include "core/text.h"

namespace welkin::archive {
namespace {

constexpr uint16_t kVersion = 45;        // zip64
constexpr uint16_t kUtf8Names = 0x0800;  // flag
constexpr uint16_t kFirstDay = 0x21;     // 1 January 1980: equal content gives equal files
constexpr uint16_t kPadding = 0x4246;    // id of the extra field that aligns; PyTorch's
constexpr uint64_t kCrcInLocal = 14;

// A record under construction.
class Bytes {
 public:
  template <std::integral T>
  Bytes& put(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  Bytes& text(std::string_view text) {
    text_.append(text);
    return *this;
  }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

uint32_t low(uint64_t value, bool in_64) { return in_64 ? kIn64 : static_cast<uint32_t>(value); }

}  // namespace

bool ZipWriter::in_64(uint64_t value) const { return always_zip64_ || value >= kIn64; }

void ZipWriter::write(std::string_view bytes) {
  write_fully(file_, path_, bytes);
  position_ += bytes.size();
}

void ZipWriter::write_local(const Row& row) {
  const bool large = in_64(row.size);
  Bytes sizes;
  if (large) sizes.put(kExtra64).put(uint16_t{16}).put(row.size).put(row.size);
  constexpr uint64_t kFieldHead = 4;
  const uint64_t before = position_ + kLocalBytes + row.name.size() + sizes.str().size() + kFieldHead;
  const uint64_t padding = (kAlignment - before % kAlignment) % kAlignment;
  Bytes head;
  head.put(kLocalSignature).put(kVersion).put(kUtf8Names).put(uint16_t{0}).put(uint16_t{0}).put(kFirstDay).put(uint32_t{0});
  head.put(low(row.size, large)).put(low(row.size, large)).put(static_cast<uint16_t>(row.name.size()));
  head.put(static_cast<uint16_t>(sizes.str().size() + kFieldHead + padding)).text(row.name).text(sizes.str());
  head.put(kPadding).put(static_cast<uint16_t>(padding)).text(std::string(padding, 'Z'));
  write(head.str());
}

// The checksum is known only when the data has passed.
void ZipWriter::patch_crc(const Row& row) const {
  const ssize_t written = ::pwrite(file_.get(), &row.crc, sizeof(row.crc), static_cast<off_t>(row.local + kCrcInLocal));
  if (written != static_cast<ssize_t>(sizeof(row.crc))) throw file_error("write", path_, errno);
}

void ZipWriter::add(const std::string& name, uint64_t num_bytes, const Producer& produce) {
  Row row{.name = name, .size = num_bytes, .local = position_, .crc = 0};
  write_local(row);
  const uint64_t begin = position_;
  produce([&](std::span<const std::byte> bytes) {
    row.crc = crc32(bytes, row.crc);
    write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  });
  WELKIN_CHECK(position_ - begin == num_bytes, cat("wrong number of bytes emitted for ", name));
  patch_crc(row);
  rows_.push_back(std::move(row));
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> bytes) {
  add(name, bytes.size(), [bytes](const Emit& emit) { emit(bytes); });
}

void ZipWriter::write_central(const Row& row) {
  const bool large = in_64(row.size), far = in_64(row.local);
  Bytes extra;
  if (large || far) {
    extra.put(kExtra64).put(static_cast<uint16_t>((large ? 16 : 0) + (far ? 8 : 0)));
    if (large) extra.put(row.size).put(row.size);
    if (far) extra.put(row.local);
  }
  Bytes head;
  head.put(kCentralSignature).put(kVersion).put(kVersion).put(kUtf8Names).put(uint16_t{0}).put(uint16_t{0}).put(kFirstDay);
  head.put(row.crc).put(low(row.size, large)).put(low(row.size, large)).put(static_cast<uint16_t>(row.name.size()));
  head.put(static_cast<uint16_t>(extra.str().size())).put(uint16_t{0}).put(uint16_t{0}).put(uint16_t{0}).put(uint32_t{0});
  head.put(low(row.local, far)).text(row.name).text(extra.str());
  write(head.str());
}

void ZipWriter::finish() {
  const uint64_t offset = position_;
  for (const Row& row : rows_) write_central(row);
  const uint64_t bytes = position_ - offset, end64 = position_, count = rows_.size();
  const bool large = in_64(offset) || in_64(bytes) || count >= kCountIn64;
  Bytes tail;
  if (large) {
    tail.put(kEnd64Signature).put(uint64_t{kEnd64Bytes - 12}).put(kVersion).put(kVersion).put(uint32_t{0}).put(uint32_t{0});
    tail.put(count).put(count).put(bytes).put(offset);
    tail.put(kEnd64LocatorSignature).put(uint32_t{0}).put(end64).put(uint32_t{1});
  }
  const auto short_count = large ? kCountIn64 : static_cast<uint16_t>(count);
  tail.put(kEndSignature).put(uint16_t{0}).put(uint16_t{0}).put(short_count).put(short_count);
  tail.put(low(bytes, large)).put(low(offset, large)).put(uint16_t{0});
  write(tail.str());
}

}  // namespace welkin::archive
