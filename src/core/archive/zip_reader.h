// SPDX-License-Identifier: Apache-2.0
// The directory of a zip file whose entries are stored without compression, as PyTorch writes them. Every byte counts as hostile:
// an archive is taken only when its entries have sane names, lie inside the file, and do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace welkin::archive {

struct ZipEntry {
  std::span<const std::byte> bytes;
  uint32_t crc32 = 0;  // 0: not computed by the writer (PyTorch can be told so)
};

class ZipReader {
 public:
  // `file` outlives the reader; `source` names it in the DataError.
  ZipReader(std::span<const std::byte> file, std::string source);

  static bool recognises(std::span<const std::byte> file);

  const std::map<std::string, ZipEntry, std::less<>>& entries() const { return entries_; }
  const ZipEntry* find(std::string_view name) const;
  // Throws DataError when the bytes of an entry do not have the checksum of the directory.
  void verify(std::string_view name) const;

 private:
  std::string source_;
  std::map<std::string, ZipEntry, std::less<>> entries_;
};

}  // namespace welkin::archive
