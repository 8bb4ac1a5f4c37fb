// SPDX-License-Identifier: Apache-2.0
// Rewriting arrays in another format, type, chunking or compression, in bounded memory; the output is complete or absent.
// Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/storage/codec.h"
#include "data/storage/stored_array.h"

namespace welkin::data {

enum class OutputFormat { Hdf5, Zarr2, Zarr3, Npy, Raw, Tar, Lmdb };

struct ConvertOptions {
  OutputFormat format = OutputFormat::Hdf5;
  std::vector<std::string> arrays;    // names; empty: all
  std::optional<Dtype> dtype;         // of arrays of two or more axes; none: as it is (packed integers become float32)
  bool packed = false;                // int16 with one scale per channel
  std::optional<Extents> chunk;       // none: contiguous, or auto where the format or the compression needs chunks
  bool auto_chunk = false;            // recommended by the shape of a read and measured where the output goes
  std::optional<CodecKind> compress;  // Gzip, Zstd, Blosc or Lz4
  int level = -1;                     // of the compressor; -1: its usual one
  std::optional<ArrayRegion> region;  // of arrays of that rank; coordinates of an axis that is cut go with it
  uint64_t block_bytes = uint64_t{64} << 20;
  std::string command;  // for the provenance
};

// The accuracy of a packed array.
struct PackingReport {
  std::string array;
  int64_t channel = 0;
  double scale = 0, offset = 0;
  double bound = 0;         // no value differs by more
  int64_t num_missing = 0;  // NaN
};

struct ProbeRow {
  std::string array;
  Extents chunk;
  double ratio = 0;                      // bytes of values per stored byte
  double write_mb_s = 0, read_mb_s = 0;  // of values
  double amplification = 0;              // values decoded per value wanted
  bool chosen = false;
};

struct ConvertReport {
  std::vector<PackingReport> packings;
  std::vector<ProbeRow> probes;
  std::vector<std::string> notes;  // warnings
  int64_t num_arrays = 0;
  uint64_t bytes_in = 0, bytes_out = 0;
};

// DataError when the input is broken, the output exists or cannot hold the arrays, or a value does not fit its type.
ConvertReport convert_arrays(const std::filesystem::path& from, const std::filesystem::path& to, const ConvertOptions& options);

// Values of an array that training reads at once: one time of fields, a crop of 64 cells of a box, else a whole small array.
Extents read_shape(const ArrayFacts& facts);
// Chunks for such reads.
Extents recommended_chunk(const ArrayFacts& facts, Dtype dtype);

}  // namespace welkin::data
