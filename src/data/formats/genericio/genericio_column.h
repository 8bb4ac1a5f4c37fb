// SPDX-License-Identifier: Apache-2.0
// The values of GenericIO files as doubles, in order, a piece at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "data/formats/genericio/crc64.h"
#include "data/formats/genericio/genericio_header.h"
#include "data/storage/codec.h"
#include "data/storage/watched_file.h"

namespace welkin::data {

class GenericIoFile {
 public:
  explicit GenericIoFile(const std::filesystem::path& path);  // DataError

  const GenericIoHeader& header() const { return header_; }
  const WatchedFile& file() const { return file_; }
  // Index of the variable. DataError with the names that there are.
  size_t variable(std::string_view name) const;
  // Index of the variable of that physical coordinate: by its flag, else by its name x, y or z.
  size_t coordinate(int axis) const;

 private:
  WatchedFile file_;
  GenericIoHeader header_;
};

// One variable of one rank. `file` outlives it. DataError where there are several values per particle. Compressed values are
// held in memory, all at once.
class GenericIoColumn {
 public:
  GenericIoColumn(const GenericIoFile& file, size_t variable, size_t rank);

  uint64_t left() const { return left_; }
  // The next out.size() <= left() values. After the last one the checksum is compared: DataError where it is wrong.
  void read(std::span<double> out);

 private:
  void decompress(uint64_t stored_bytes);
  void check_sum();
  [[noreturn]] void refuse_sum() const;

  const GenericIoFile& file_;
  const GenericIoVariable& variable_;
  uint64_t offset_, left_;
  Crc64 sum_;
  std::vector<std::byte> raw_;
  ByteBuffer decoded_;  // of compressed values
  size_t taken_ = 0;    // bytes of it
  bool is_compressed_ = false;
};

}  // namespace welkin::data
