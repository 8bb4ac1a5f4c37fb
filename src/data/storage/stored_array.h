// SPDX-License-Identifier: Apache-2.0
// The one way to read arrays from files, whatever the format: a StoredArray hands out any rectangular region of an
// n-dimensional array as floats or doubles, into strided memory. An ArrayFile names the arrays and attributes of a file and is
// opened by its content (open_array_file). Torch-free; the readers below treat the bytes as hostile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/dtype.h"
#include "data/storage/watched_file.h"

namespace welkin::data {

using Extents = std::vector<int64_t>;

// numpy's limit; so that index arithmetic needs no allocation.
inline constexpr size_t kMostArrayDims = 32;

// Along each axis [begin, end). An empty range is legal.
struct ArrayRegion {
  Extents begin, end;

  Extents extent() const;
  int64_t num_values() const;
};
ArrayRegion whole_region(const Extents& shape);

// Stored values that stand for others: value = stored * scale + offset, computed in double. One scale for all, or one for each
// index along `axis`. A stored value that is one of `missing`, or outside of the valid range, is NaN.
struct Packing {
  std::vector<double> scale, offset;  // both of size 1, or of the extent of `axis`
  size_t axis = 0;
  std::vector<double> missing{};
  std::optional<double> valid_min{}, valid_max{};
  double unsigned_range = 0;  // added to negative values: 256 for unsigned bytes stored as signed; -256: the reverse; 0: not

  bool is_scaled() const;  // false: values are NaN or as they are stored
  // The only float32 that does not stand for itself: it is missing. Nullopt where there are more.
  std::optional<float> only_missing() const;
};

// Missing values (NaN when read). Declared: by attributes. Undeclared: netCDF's default fill value, which no attribute names;
// most such files have none.
enum class Missing { None, Undeclared, Declared };

struct ArrayFacts {
  std::string source;        // path, and the array where a file has several: for errors
  std::string name;          // empty: the file holds one array without a name
  Extents shape{};           // empty: a scalar
  Extents chunk{};           // values decoded at once; empty: any value is read by itself
  Dtype dtype = Dtype::F32;  // as stored
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<std::string> codecs{};  // from values to bytes: "shuffle", "deflate", "blosc(lz4)", ...
  uint64_t stored_bytes = 0;          // 0: not known without reading everything
  std::vector<std::string> axes{};    // names, where the file gives them: "time", "channel", ...
  std::optional<Packing> packing{};
  Missing missing = Missing::None;

  int64_t num_values() const;
};

// Memory for read values: element (i, j, ...) of the region goes to to[i * stride[0] + j * stride[1] + ...], float or double.
struct ValueTarget {
  void* to = nullptr;
  bool is_double = false;
  const int64_t* stride = nullptr;  // elements; one per axis
};

// Little-endian float32 at fixed strides in a file, for callers that copy from the mapping themselves.
struct MappedFloats {
  std::shared_ptr<const WatchedFile> file;
  uint64_t offset = 0;             // bytes, a multiple of 4
  Extents stride;                  // floats
  std::optional<float> missing{};  // is to be NaN
};

// Thread-safe after construction. Reading throws DataError naming file, array and offset or chunk.
class StoredArray {
 public:
  virtual ~StoredArray() = default;
  StoredArray(const StoredArray&) = delete;
  StoredArray& operator=(const StoredArray&) = delete;

  const ArrayFacts& facts() const { return facts_; }

  // Reads no more than the region needs. `stride` counts elements of `to`, one per axis.
  void read(const ArrayRegion& region, float* to, std::span<const int64_t> stride) const;
  void read(const ArrayRegion& region, double* to, std::span<const int64_t> stride) const;
  // Row-major into `out`, which has the size of the region.
  void read(const ArrayRegion& region, std::span<float> out) const;
  void read(const ArrayRegion& region, std::span<double> out) const;
  // The whole of a small array, row-major; DataError above `most` values.
  std::vector<double> read_doubles(int64_t most = int64_t{1} << 26) const;

  // The region cut along the borders of chunks: pieces that several threads may read at once without decoding anything twice.
  std::vector<ArrayRegion> pieces(const ArrayRegion& region) const;

  virtual std::optional<MappedFloats> mapped() const { return std::nullopt; }
  // Bytes that were asked of its file so far, by all arrays that share it; 0 where they are not counted.
  virtual uint64_t bytes_requested() const { return 0; }

 protected:
  explicit StoredArray(ArrayFacts facts);
  // The region lies inside and is not empty. Values as they are stored: packing is undone by read().
  virtual void read_stored(const ArrayRegion& region, const ValueTarget& target) const = 0;

 private:
  void read_values(const ArrayRegion& region, const ValueTarget& target) const;

  ArrayFacts facts_;
};

using StoredArrayPtr = std::shared_ptr<const StoredArray>;

using AttributeValue = std::variant<std::vector<std::string>, std::vector<double>>;  // a scalar has size 1
using Attributes = std::map<std::string, AttributeValue, std::less<>>;

// An open file or folder. Copies share the arrays.
struct ArrayFile {
  std::filesystem::path path;
  std::string format;                                           // for people: "HDF5", "npy", "Zarr 3", ...
  std::map<std::string, StoredArrayPtr, std::less<>> arrays;    // by path in the file; "" for the one array without a name
  std::map<std::string, std::string, std::less<>> not_numbers;  // arrays that cannot be read, and why
  std::map<std::string, std::string, std::less<>> elsewhere{};  // names that are links into other files, and where those point
  std::map<std::string, std::vector<std::string>, std::less<>> text_arrays{};  // of one dimension; also in not_numbers
  std::map<std::string, Attributes, std::less<>> attributes;                   // of arrays and groups; "" is the file

  bool has(std::string_view name) const { return arrays.contains(name); }
  // The array of that name; in a file of one array without a name, that one. DataError with the names that there are.
  StoredArrayPtr array(std::string_view name) const;
  // Attributes as texts or numbers; empty where there is none, or not of that kind.
  std::vector<std::string> texts(std::string_view object, std::string_view name) const;
  std::vector<double> numbers(std::string_view object, std::string_view name) const;
};

// Sets `packing` and `missing` of `facts` (type and shape are known) from the attributes of the array, by the names of the CF
// conventions: scale_factor, add_offset, _Unsigned, and _FillValue, missing_value, valid_range, valid_min, valid_max, which are
// in units of the stored values. One scale per index along scale_axis is our extension. Nothing is set where a _FillValue of
// NaN is all there is: values are read as they are. DataError when they do not fit the shape. `undeclared`: the value for
// missing ones where there is no attribute _FillValue.
void add_packing(const Attributes& attributes, ArrayFacts& facts, std::optional<double> undeclared = {});

// The value that netCDF leaves where nothing was written (netCDF users' guide); nullopt for types of one byte.
std::optional<double> netcdf_fill(Dtype dtype);
// True for a value that usually stands for a missing one, and hardly ever for itself: -9999, 1e20.
bool is_usual_fill(float value);
// The warning for it.
std::string undeclared_fill_line(std::string_view channel, float value);

// Undoes the packing in place; element (i, j, ...) of the region lies at to[i * stride[0] + ...].
void unpack(const Packing& packing, const ArrayRegion& region, float* to, const int64_t* stride);
void unpack(const Packing& packing, const ArrayRegion& region, double* to, const int64_t* stride);

// Calls body(offset) for each row along the last axis of a strided block.
template <typename Body>
void for_each_row(const Extents& extent, const int64_t* stride, Body&& body) {
  const size_t outer = extent.size() - 1;
  Extents index(outer, 0);
  for (;;) {
    int64_t offset = 0;
    for (size_t d = 0; d < outer; ++d) offset += index[d] * stride[d];
    body(offset);
    size_t d = outer;
    while (d > 0 && ++index[d - 1] == extent[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

// "(2, 3)"
std::string extents_text(const Extents& shape);
// Row-major strides in elements.
Extents c_strides(const Extents& shape);

}  // namespace welkin::data
