// SPDX-License-Identifier: Apache-2.0
#include "core/archive/zip_reader.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "core/archive/byte_cursor.h"
#include "core/archive/crc32.h"
#include "core/archive/zip_format.h"

namespace welkin::archive {
namespace {

constexpr std::string_view kZip = "zip";
constexpr size_t kLongestName = 1024;
constexpr uint64_t kLongestComment = 0xFFFF;

[[noreturn]] void refuse_zip(std::string_view source, std::string_view why) {
  throw DataError(kZip, cat(why, ", file=", source), "The file is damaged or made by hand: fetch it or save it again");
}

struct Directory {
  uint64_t offset = 0, bytes = 0, entries = 0;
};

// Place of the end record: the last thing in the file, but for a comment whose length it gives.
uint64_t find_end(std::span<const std::byte> file, std::string_view source) {
  if (file.size() >= kEndBytes) {
    const uint64_t last = file.size() - kEndBytes;
    const uint64_t first = last > kLongestComment ? last - kLongestComment : 0;
    for (uint64_t at = last + 1; at-- > first;) {
      ByteCursor cursor(file, kZip, source, at);
      if (cursor.little<uint32_t>() != kEndSignature) continue;
      cursor.take(16);
      if (cursor.little<uint16_t>() == last - at) return at;
    }
  }
  refuse_zip(source, cat("there is no end of a zip directory, the file is cut short: bytes=", file.size()));
}

Directory read_end64(std::span<const std::byte> file, std::string_view source, uint64_t end) {
  if (end < kEnd64LocatorBytes) refuse_zip(source, "the zip64 end record is missing");
  ByteCursor locator(file, kZip, source, end - kEnd64LocatorBytes);
  if (locator.little<uint32_t>() != kEnd64LocatorSignature) refuse_zip(source, "the zip64 end record is missing");
  locator.take(4);
  const auto at = locator.little<uint64_t>();
  if (at > end - kEnd64LocatorBytes) refuse_zip(source, cat("the zip64 end record lies outside the file: at=", at));
  ByteCursor cursor(file, kZip, source, at);
  if (cursor.little<uint32_t>() != kEnd64Signature) refuse_zip(source, "the zip64 end record is missing");
  cursor.take(28);
  Directory directory;
  directory.entries = cursor.little<uint64_t>();
  directory.bytes = cursor.little<uint64_t>();
  directory.offset = cursor.little<uint64_t>();
  return directory;
}

Directory read_end(std::span<const std::byte> file, std::string_view source) {
  const uint64_t end = find_end(file, source);
  ByteCursor cursor(file, kZip, source, end + 4);
  const auto disk = cursor.little<uint16_t>();
  cursor.take(4);
  Directory directory;
  directory.entries = cursor.little<uint16_t>();
  directory.bytes = cursor.little<uint32_t>();
  directory.offset = cursor.little<uint32_t>();
  if (disk != 0 && disk != kCountIn64) refuse_zip(source, "the archive is split over several files");
  if (directory.entries == kCountIn64 || directory.bytes == kIn64 || directory.offset == kIn64) {
    directory = read_end64(file, source, end);
  }
  if (directory.offset > end || directory.bytes > end - directory.offset) {
    refuse_zip(source, cat("the zip directory lies outside the file: offset=", directory.offset, ", bytes=", directory.bytes,
                           ", file bytes=", file.size()));
  }
  if (directory.entries > directory.bytes / kCentralBytes) {
    refuse_zip(source, cat("more entries than the zip directory has room for: entries=", directory.entries,
                           ", directory bytes=", directory.bytes));
  }
  return directory;
}

// A name is only looked up, never used as a path; but an archive that has such names was not made by PyTorch.
void check_name(std::string_view name, std::string_view source) {
  const auto bad = [&](std::string_view why) {
    std::string shown(name.substr(0, 80));
    std::ranges::replace_if(
        shown, [](char c) { return c < ' ' || c == 127; }, '?');
    refuse_zip(source, cat("an entry has a name that is not allowed (", why, "): name=", shown));
  };
  if (name.empty()) bad("empty");
  if (name.size() > kLongestName) bad("too long");
  if (name.front() == '/') bad("absolute path");
  if (name.find('\\') != std::string_view::npos) bad("backslash");
  if (std::ranges::any_of(name, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; })) bad("control character");
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part == ".." || part == ".") bad("leads out of the archive");
    begin = end + 1;
  }
}

// One row of the directory.
struct CentralRow {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t compressed = 0, size = 0, local = 0;
};

// The values that did not fit into 32 bits, in the order of the format.
void read_extra64(CentralRow& row, std::span<const std::byte> extra, std::string_view source) {
  const bool wanted = row.size == kIn64 || row.compressed == kIn64 || row.local == kIn64;
  ByteCursor cursor(extra, kZip, source);
  while (wanted && extra.size() - cursor.position() >= 4) {
    const auto id = cursor.little<uint16_t>();
    const auto field = cursor.take(cursor.little<uint16_t>());
    if (id != kExtra64) continue;
    ByteCursor values(field, kZip, source);
    for (uint64_t* value : {&row.size, &row.compressed, &row.local}) {
      if (*value == kIn64) *value = values.little<uint64_t>();
    }
    return;
  }
  if (wanted) refuse_zip(source, cat("an entry lacks its zip64 sizes: name=", row.name));
}

CentralRow read_row(ByteCursor& cursor, std::string_view source) {
  CentralRow row;
  if (cursor.little<uint32_t>() != kCentralSignature) {
    refuse_zip(source, cat("the zip directory is damaged: at=", cursor.position() - 4));
  }
  cursor.take(4);
  row.flags = cursor.little<uint16_t>();
  row.method = cursor.little<uint16_t>();
  cursor.take(4);
  row.crc = cursor.little<uint32_t>();
  row.compressed = cursor.little<uint32_t>();
  row.size = cursor.little<uint32_t>();
  const auto name_bytes = cursor.little<uint16_t>();
  const auto extra_bytes = cursor.little<uint16_t>();
  const auto comment_bytes = cursor.little<uint16_t>();
  cursor.take(8);
  row.local = cursor.little<uint32_t>();
  row.name = std::string(cursor.text(name_bytes));
  read_extra64(row, cursor.take(extra_bytes), source);
  cursor.take(comment_bytes);
  check_name(row.name, source);
  return row;
}

void check_method(const CentralRow& row, std::string_view source) {
  if ((row.flags & 1) != 0) refuse_zip(source, cat("an entry is encrypted: name=", row.name));
  if (row.method != 0) {
    throw DataError(
        kZip,
        cat("an entry is compressed, which PyTorch never does: name=", row.name, ", method=", row.method, ", file=", source),
        "Save it with torch.save, or pack it anew without compression (zip -0)");
  }
  if (row.compressed != row.size) {
    refuse_zip(source, cat("an entry has two sizes: name=", row.name, ", stored=", row.compressed, ", size=", row.size));
  }
}

// Place of an entry's data: behind its local header, which must name the same entry.
uint64_t data_offset(std::span<const std::byte> file, const CentralRow& row, std::string_view source) {
  ByteCursor cursor(file, kZip, source, row.local);
  if (cursor.little<uint32_t>() != kLocalSignature) refuse_zip(source, cat("an entry has no local header: name=", row.name));
  cursor.take(22);
  const auto name_bytes = cursor.little<uint16_t>();
  const auto extra_bytes = cursor.little<uint16_t>();
  if (cursor.text(name_bytes) != row.name) refuse_zip(source, cat("an entry has two names: name=", row.name));
  cursor.take(extra_bytes);
  return cursor.position();
}

struct Extent {
  uint64_t begin, end;
};

void check_overlap(std::vector<Extent> extents, std::string_view source) {
  std::ranges::sort(extents, {}, &Extent::begin);
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) {
      refuse_zip(source, cat("entries overlap: first ends at=", extents[i - 1].end, ", next begins at=", extents[i].begin));
    }
  }
}

}  // namespace

bool ZipReader::recognises(std::span<const std::byte> file) {
  uint32_t signature = 0;
  if (file.size() < sizeof(signature)) return false;
  std::memcpy(&signature, file.data(), sizeof(signature));
  return signature == kLocalSignature || signature == kEndSignature;
}

ZipReader::ZipReader(std::span<const std::byte> file, std::string source) : source_(std::move(source)) {
  const Directory directory = read_end(file, source_);
  const auto rows = file.subspan(0, directory.offset + directory.bytes);
  ByteCursor cursor(rows, kZip, source_, directory.offset);
  std::vector<Extent> extents;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    const CentralRow row = read_row(cursor, source_);
    check_method(row, source_);
    const uint64_t begin = data_offset(file, row, source_);
    if (begin > directory.offset || row.size > directory.offset - begin) {
      refuse_zip(source_, cat("an entry lies outside the file: name=", row.name, ", begin=", begin, ", bytes=", row.size));
    }
    extents.push_back({row.local, begin + row.size});
    if (!entries_.emplace(row.name, ZipEntry{.bytes = file.subspan(begin, row.size), .crc32 = row.crc}).second) {
      refuse_zip(source_, cat("two entries have one name: name=", row.name));
    }
  }
  check_overlap(std::move(extents), source_);
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

void ZipReader::verify(std::string_view name) const {
  const ZipEntry* entry = find(name);
  WELKIN_CHECK(entry != nullptr, cat("no such zip entry: ", name));
  if (entry->crc32 == 0) return;
  if (const uint32_t crc = crc32(entry->bytes); crc != entry->crc32) {
    refuse_zip(source_, cat("an entry is damaged: name=", name, ", crc32=", crc, ", expected=", entry->crc32));
  }
}

}  // namespace welkin::archive
