// SPDX-License-Identifier: Apache-2.0
// Facts that a file cannot say by itself, as a JSON document: the sidecar of a raw or npy file (NAME.json), or the member
// welkin.json of a tar file or LMDB. It names arrays, their place and type (raw), attributes, and small arrays such as
// coordinates as lists of numbers:
//   {"attributes": {...}, "arrays": {"fields": {"shape": [8, 2, 4, 6], "dtype": "float32", "order": "C", "byte_order": "little",
//   "offset": 0,
//    "axes": ["time", "channel", "lat", "lon"], "attributes": {"channels": ["t", "u"]}}, "time": {"values": [0, 21600]}}}
// {"shape": ..., "dtype": ...} alone describes one array without a name. Torch-free; the text is hostile.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/storage/stored_array.h"

namespace welkin::data {

struct SidecarArray {
  std::optional<Extents> shape;
  Dtype dtype = Dtype::F32;
  bool big_endian = false;
  bool fortran_order = false;
  uint64_t offset = 0;
  std::optional<std::vector<double>> values;  // of a one-dimensional array that stands in the document itself
  std::vector<std::string> axes;
  Attributes attributes;
};

struct Sidecar {
  std::map<std::string, SidecarArray, std::less<>> arrays;
  Attributes attributes;
};

inline constexpr std::string_view kSidecarName = "__welkin__/description.json";
inline constexpr uint64_t kMaxSidecarBytes = uint64_t{64} << 20;

// DataError naming `source`.
Sidecar parse_sidecar(std::string_view text, std::string_view source);
std::string sidecar_text(const Sidecar& document);

// NAME.json beside the file; empty where there is none, or where that is no such document.
std::optional<Sidecar> read_sidecar(const std::filesystem::path& path);
std::filesystem::path sidecar_path(const std::filesystem::path& path);

// Adds the attributes, and the arrays of values, of a document to an open file.
void add_sidecar(const Sidecar& document, std::string_view source, ArrayFile& file);

// "float32", "<f4" and the like, as numpy and Zarr spell them. Empty for other types.
struct NamedType {
  Dtype dtype;
  bool big_endian;
};
std::optional<NamedType> named_type(std::string_view text);
std::string_view type_name_of(Dtype dtype);  // "float32"

}  // namespace welkin::data
