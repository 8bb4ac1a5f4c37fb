// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files (numpy.lib.format, versions 1 to 3), torch-free. Headers are hostile bytes; values of every number type can
// be read, in either byte order, and arrays of either order (C, Fortran).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/file_descriptor.h"
#include "data/storage/watched_file.h"

namespace welkin::data {

struct NpyHeader {
  Dtype dtype = Dtype::F32;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<int64_t> shape;  // empty: a scalar
  uint64_t data_offset = 0;    // of the first value in the file

  int64_t num_values() const;
  bool is_float32_le() const { return dtype == Dtype::F32 && !big_endian; }
};

// `head` is the beginning of a file of `file_bytes` bytes: its first kNpyHeadBytes, or all of it. `source` names it in the
// DataError. Checks magic, version, length, the dictionary, the type, and that shape and file size agree.
inline constexpr size_t kNpyHeadBytes = 65536 + 16;
NpyHeader parse_npy_header(std::span<const std::byte> head, uint64_t file_bytes, std::string_view source);

// The header of a C-order, little-endian array.
std::string npy_header_of(const std::vector<int64_t>& shape, Dtype dtype);

// An open file. Thread-safe after construction.
class NpyFile {
 public:
  explicit NpyFile(const std::filesystem::path& path);

  const NpyHeader& header() const { return header_; }
  const WatchedFile& file() const { return *file_; }
  std::shared_ptr<const WatchedFile> shared_file() const { return file_; }

  // All values in C order, of any number type. For small arrays: DataError above `most` values.
  std::vector<double> read_doubles(int64_t most) const;
  // `count` values from the `first` on, in the order of the file.
  std::vector<double> read_run(int64_t first, int64_t count) const;

 private:
  std::shared_ptr<const WatchedFile> file_;
  NpyHeader header_;
};

// Writes an array piece by piece, C order, little endian, at a path that write_path_atomically (core/file.h) gives.
class NpyWriter {
 public:
  NpyWriter(const std::filesystem::path& path, Dtype dtype, const std::vector<int64_t>& shape);
  void append(std::span<const float> values);   // dtype F32
  void append(std::span<const double> values);  // dtype F64
  void close();                                 // checks that the shape is filled

 private:
  void append_bytes(std::span<const std::byte> bytes, Dtype dtype);

  std::filesystem::path path_;
  FileDescriptor file_;
  Dtype dtype_;
  uint64_t bytes_left_ = 0;
};

// A whole small array, atomically.
void write_npy(const std::filesystem::path& path, const std::vector<int64_t>& shape, std::span<const float> values);

}  // namespace welkin::data
