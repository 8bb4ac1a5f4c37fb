// SPDX-License-Identifier: Apache-2.0
// What HDF5 says about a data set: shape, type, layout, filters, and the place of its bytes in the file.
#include <algorithm>
#include <array>
#include <limits>

#include "core/text.h"
#include "data/hdf5_handle.h"

namespace welkin::data {
namespace {

Extents to_extents(const std::vector<hsize_t>& sizes) {
  Extents extents;
  for (const hsize_t size : sizes) {
    const bool fits = size <= static_cast<hsize_t>(std::numeric_limits<int64_t>::max());
    extents.push_back(size == H5S_UNLIMITED ? -1 : fits ? static_cast<int64_t>(size) : std::numeric_limits<int64_t>::max());
  }
  return extents;
}

std::string number_type_name(hid_t type, std::string_view kind) {
  const bool big = H5Tget_order(type) == H5T_ORDER_BE && H5Tget_size(type) > 1;
  return cat(kind, 8 * H5Tget_size(type), big ? " big-endian" : "");
}

std::string type_name(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      return number_type_name(type, "float");
    case H5T_INTEGER:
      return number_type_name(type, H5Tget_sign(type) == H5T_SGN_NONE ? "uint" : "int");
    case H5T_STRING:
      return "string";
    case H5T_COMPOUND:
      return "compound";
    case H5T_ENUM:
      return "enum";
    case H5T_REFERENCE:
      return "reference";
    case H5T_VLEN:
      return "variable-length";
    default:
      return "opaque";
  }
}

std::string filter_name(H5Z_filter_t filter) {
  switch (filter) {
    case H5Z_FILTER_DEFLATE:
      return "deflate";
    case H5Z_FILTER_SHUFFLE:
      return "shuffle";
    case H5Z_FILTER_FLETCHER32:
      return "fletcher32";
    case H5Z_FILTER_SZIP:
      return "szip";
    case H5Z_FILTER_NBIT:
      return "nbit";
    case H5Z_FILTER_SCALEOFFSET:
      return "scaleoffset";
    default:
      return cat("filter ", filter);
  }
}

void add_layout(hid_t dataset, int rank, Hdf5Dataset& facts) {
  const Hdf5Handle list(H5Dget_create_plist(dataset), H5Pclose);
  const H5D_layout_t layout = H5Pget_layout(list.get());
  if (layout == H5D_CHUNKED && rank > 0) {
    std::vector<hsize_t> chunk(static_cast<size_t>(rank));
    H5Pget_chunk(list.get(), rank, chunk.data());
    facts.chunk = to_extents(chunk);
  }
  const int num_filters = H5Pget_nfilters(list.get());
  for (int i = 0; i < num_filters; ++i) {
    unsigned flags = 0, configuration = 0;
    size_t num_values = 0;
    facts.filters.push_back(filter_name(
        H5Pget_filter2(list.get(), static_cast<unsigned>(i), &flags, &num_values, nullptr, 0, nullptr, &configuration)));
  }
  facts.stored_bytes = H5Dget_storage_size(dataset);
  const haddr_t offset = H5Dget_offset(dataset);
  const bool here = layout == H5D_CONTIGUOUS && H5Pget_external_count(list.get()) == 0 && offset != HADDR_UNDEF;
  if (here && facts.stored_bytes > 0) facts.offset = offset;
}

}  // namespace

Hdf5Dataset Hdf5File::dataset(std::string_view name) const {
  const Hdf5Lock lock;
  if (!has_dataset(name)) {
    throw DataError("hdf5", cat("no such data set: path=", path().string(), ", dataset=", name),
                    cat("The file holds: ", join(dataset_names(), ", ").substr(0, 400)));
  }
  const hid_t id = impl_->dataset(name);
  const Hdf5Handle space(H5Dget_space(id), H5Sclose);
  const Hdf5Handle type(H5Dget_type(id), H5Tclose);
  if (!space || !type) throw hdf5_error("read the facts", path(), name);
  Hdf5Dataset facts;
  facts.name = name;
  const int rank = std::max(0, H5Sget_simple_extent_ndims(space.get()));
  std::vector<hsize_t> sizes(static_cast<size_t>(rank)), most(static_cast<size_t>(rank));
  H5Sget_simple_extent_dims(space.get(), sizes.data(), most.data());
  facts.shape = to_extents(sizes);
  facts.max_shape = to_extents(most);
  facts.dtype = type_name(type.get());
  const H5T_class_t kind = H5Tget_class(type.get());
  facts.is_number = kind == H5T_FLOAT || kind == H5T_INTEGER;
  facts.is_float32_le = H5Tequal(type.get(), H5T_IEEE_F32LE) > 0;
  add_layout(id, rank, facts);
  H5Eclear2(H5E_DEFAULT);
  return facts;
}

}  // namespace welkin::data
