// SPDX-License-Identifier: Apache-2.0
// Writing arrays into a file of any format, block by block in bounded memory. A writer fills the path that it is given (a
// temporary name: its caller publishes it). Torch-free.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/formats/sidecar.h"
#include "data/storage/codec.h"
#include "data/storage/stored_array.h"

namespace welkin::data {

struct OutputArray {
  std::string name;
  Extents shape;
  Extents chunk;  // empty where the format or the user has none
  Dtype dtype = Dtype::F32;
  std::vector<Codec> codecs;
  std::vector<std::string> axes;
  Attributes attributes;
  bool nan_is_missing = false;  // of floats: the file says that NaN stands for no value (_FillValue)
};

// Little-endian values, row-major, of a block of the array number `array`.
using StoredBlock = std::span<const std::byte>;

// Calls: the constructor of a format with all arrays, write() for every block, finish() once. DataError when the disk refuses.
class ArrayWriter {
 public:
  virtual ~ArrayWriter() = default;
  // The order in which blocks have to come: samples of all arrays by turns (archives), one array after the other (others). Blocks
  // of an array come in row-major order; those of chunked arrays consist of whole chunks, others of whole trailing axes.
  virtual bool by_sample() const { return false; }
  virtual void write(size_t array, const ArrayRegion& region, StoredBlock values) = 0;
  virtual void finish() = 0;
};

// `small` are the attributes of the file and arrays that the format has no place for as arrays of their own (coordinates).
struct OutputFile {
  std::vector<OutputArray> arrays;
  Attributes attributes;
  std::vector<std::pair<OutputArray, std::vector<double>>> small;  // one-dimensional
};

// An attribute that is one text.
AttributeValue text_attribute(std::string text);
// The CF attributes of these coordinates, in degrees.
Attributes latitude_attributes();
Attributes longitude_attributes();
// Adds a coordinate: an array along its own axis, in one chunk.
void add_coordinate(OutputFile& output, const std::string& name, std::vector<double> values, Attributes attributes,
                    Dtype dtype = Dtype::F64);

std::unique_ptr<ArrayWriter> make_npy_writer(const std::filesystem::path& path, const OutputFile& output);
std::unique_ptr<ArrayWriter> make_raw_writer(const std::filesystem::path& path, const OutputFile& output);
std::unique_ptr<ArrayWriter> make_tar_writer(const std::filesystem::path& path, const OutputFile& output);
std::unique_ptr<ArrayWriter> make_lmdb_writer(const std::filesystem::path& folder, const OutputFile& output);
// Of these two, blocks may come in any order, and several ranks may write different blocks of one path.
std::unique_ptr<ArrayWriter> make_zarr_writer(const std::filesystem::path& folder, int version, const OutputFile& output);
std::unique_ptr<ArrayWriter> make_netcdf_writer(const std::filesystem::path& path, const OutputFile& output);
std::unique_ptr<ArrayWriter> make_hdf5_writer(const std::filesystem::path& path, const OutputFile& output);

// The document beside or inside a file that cannot describe itself; for raw files with the place of each array.
Sidecar sidecar_of(const OutputFile& output);
// First byte of each array of a raw file.
std::vector<uint64_t> raw_offsets(const OutputFile& output);

uint64_t stored_bytes(const OutputArray& array);

}  // namespace welkin::data
