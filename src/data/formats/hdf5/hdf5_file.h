// SPDX-License-Identifier: Apache-2.0
// HDF5 files through the C API, torch-free: hyperslabs, facts about data sets, attributes, writing with chunks and a growing
// axis. Debian's HDF5 is not thread-safe: every call in this process is made under the one mutex of Hdf5Lock, taken inside these
// functions, so an Hdf5File may be used by several threads. Every failure is a DataError naming file and data set, with the
// reason that HDF5's error stack gives; the library itself prints nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/storage/codec.h"
#include "data/storage/stored_array.h"

namespace welkin::data {

// Holds the process-wide HDF5 mutex; for code that calls the C API itself. Recursive. Silences HDF5's own printing.
class Hdf5Lock {
 public:
  Hdf5Lock();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

struct ChunkLayout;  // hdf5_chunks.h
struct ChunkPlace;

enum class Hdf5Type { Float32, Float64, Int32, Int64 };

struct Hdf5Dataset {
  std::string name;                  // path in the file, without the leading slash: "fields", "group/x"
  Extents shape;                     // empty: a scalar
  Extents max_shape;                 // -1 = unlimited
  Extents chunk;                     // empty: not chunked
  std::string dtype;                 // "float32", "bfloat16", "int16 big-endian", "string", "compound", ...
  bool is_number = false;            // can be read as float or double
  bool is_float32_le = false;        // stored exactly as little-endian IEEE float32
  bool is_plain = false;             // `dtype` says all: a type of core/dtype.h in either byte order, without padding
  std::vector<std::string> filters;  // "deflate", "shuffle", ...
  uint64_t stored_bytes = 0;         // in the file; 0 when nothing was written
  std::optional<double> fill;        // a writer's value for cells that are not written; numbers only
  std::optional<uint64_t> offset;    // first byte in the file: contiguous, allocated, unfiltered, in this very file
};

struct Hdf5Create {
  Hdf5Type type = Hdf5Type::Float32;
  Extents shape{};
  Extents chunk{};               // empty: contiguous
  bool growing = false;          // the first axis may grow with extend(); needs chunks
  int deflate = 0;               // 1..9: zlib after a byte shuffle; needs chunks
  std::optional<Dtype> dtype{};  // instead of `type`: little-endian values for write_bytes
  std::optional<Codec>
      codec{};  // one of those of hdf5_filters.h, after a byte shuffle where it has none of its own; needs chunks
};

// Dimension scales of a file that is written: which data set stands for each axis of an array.
struct DimensionScales {
  std::map<std::string, std::vector<std::string>> of_arrays;  // names of scales, one per axis
  std::map<std::string, std::string> titles;                  // every scale, with its attribute NAME
};

// An open file. The destructor closes it and hides errors, so writers call close().
class Hdf5File {
 public:
  static Hdf5File open(const std::filesystem::path& path);  // read-only, without file locks (parallel file systems)
  static Hdf5File create(
      const std::filesystem::path& path);  // truncates; give it the path of write_path_atomically (core/file.h)
  Hdf5File(Hdf5File&&) noexcept;
  Hdf5File& operator=(Hdf5File&&) noexcept;
  ~Hdf5File();

  const std::filesystem::path& path() const;
  void close();  // throws DataError when what was written did not reach the file

  // Facts. Names are sorted; groups are searched to a depth of 16. Soft links to data sets are names of their own; links into
  // other files are never followed.
  std::vector<std::string> dataset_names() const;
  std::map<std::string, std::string> external_links() const;  // name -> "other.h5:/object"
  bool has_dataset(std::string_view name) const;
  Hdf5Dataset dataset(std::string_view name) const;  // DataError with the names that there are

  // For readers that decode chunks without the library (hdf5_chunks.h). Nullopt where they cannot: another type, other filters,
  // bytes in other files. The place is that of the chunk whose first cell is given.
  std::optional<ChunkLayout> chunk_layout(std::string_view name) const;
  ChunkPlace chunk_place(std::string_view name, const Extents& first_cell) const;

  // A hyperslab, row-major, converted from any number type. `out` holds the product of `extent`. Bounds are checked here.
  void read(std::string_view name, const Extents& begin, const Extents& extent, std::span<float> out) const;
  void read(std::string_view name, const Extents& begin, const Extents& extent, std::span<double> out) const;
  void read(std::string_view name, const Extents& begin, const Extents& extent, std::span<int64_t> out) const;
  // The whole of a small data set (at most 2^26 values).
  std::vector<double> read_doubles(std::string_view name) const;
  std::vector<int64_t> read_integers(std::string_view name) const;

  // Names of the dimensions: their labels, else those of the dimension scales attached; empty where a dimension has neither.
  std::vector<std::string> dimension_names(std::string_view name) const;
  // A data set of one dimension of texts, or of two of single characters; empty for others and for more than 65536 texts.
  std::vector<std::string> text_values(std::string_view name) const;

  // Attributes of a data set or group; object "/" is the file itself. Strings of fixed or variable length, one or many.
  std::vector<std::string> attribute_names(std::string_view object) const;
  bool has_attribute(std::string_view object, std::string_view name) const;
  std::vector<std::string> strings(std::string_view object, std::string_view name) const;  // a scalar gives one
  std::vector<double> numbers(std::string_view object, std::string_view name) const;
  bool is_string_attribute(std::string_view object, std::string_view name) const;

  // Writing.
  void create_dataset(std::string_view name, const Hdf5Create& options);
  void extend(std::string_view name, int64_t length);        // of the first axis
  void set_dimension_scales(const DimensionScales& scales);  // once, when all data sets exist
  void write(std::string_view name, const Extents& begin, const Extents& extent, std::span<const float> values);
  void write(std::string_view name, const Extents& begin, const Extents& extent, std::span<const double> values);
  void write(std::string_view name, const Extents& begin, const Extents& extent, std::span<const int64_t> values);
  void write_bytes(std::string_view name, const Extents& begin, const Extents& extent,
                   std::span<const std::byte> values);                                                       // as stored
  void set_strings(std::string_view object, std::string_view name, const std::vector<std::string>& values);  // an array, UTF-8
  void set_string(std::string_view object, std::string_view name, std::string_view value);                   // a scalar
  void set_number(std::string_view object, std::string_view name, double value);
  void set_numbers(std::string_view object, std::string_view name, const std::vector<double>& values);
  void set_integer(std::string_view object, std::string_view name, int64_t value);

 private:
  struct Impl;
  explicit Hdf5File(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace welkin::data
