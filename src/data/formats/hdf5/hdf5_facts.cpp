// SPDX-License-Identifier: Apache-2.0
// Facts of a data set in HDF5: shape, type, layout, filters, and the place of its bytes in the file.
#include <algorithm>
#include <array>
#include <limits>

#include "core/text.h"
#include "data/formats/hdf5/hdf5_chunks.h"
#include "data/formats/hdf5/hdf5_filters.h"
#include "data/formats/hdf5/hdf5_handle.h"

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

bool is_two_byte_float(hid_t type, size_t exponent_bits) {
  const Hdf5Handle little = hdf5_two_byte_float(exponent_bits), big = hdf5_two_byte_float(exponent_bits);
  H5Tset_order(big.get(), H5T_ORDER_BE);
  return H5Tequal(type, little.get()) > 0 || H5Tequal(type, big.get()) > 0;
}

// True for a type that numpy has, so that its bytes may be read without HDF5.
bool is_plain_type(hid_t type) {
  const std::array<hid_t, 20> known{H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE, H5T_STD_I8LE,
                                    H5T_STD_I8BE,   H5T_STD_U8LE,   H5T_STD_U8BE,   H5T_STD_I16LE,  H5T_STD_I16BE,
                                    H5T_STD_U16LE,  H5T_STD_U16BE,  H5T_STD_I32LE,  H5T_STD_I32BE,  H5T_STD_U32LE,
                                    H5T_STD_U32BE,  H5T_STD_I64LE,  H5T_STD_I64BE,  H5T_STD_U64LE,  H5T_STD_U64BE};
  const bool found = std::ranges::any_of(known, [&](hid_t other) { return H5Tequal(type, other) > 0; });
  return found || is_two_byte_float(type, 5) || is_two_byte_float(type, 8);
}

std::string type_name(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      if (is_two_byte_float(type, 8)) return number_type_name(type, "bfloat");
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
    case kHdf5Zstd:
      return "zstd";
    case kHdf5Blosc:
      return "blosc";
    case kHdf5Lz4:
      return "lz4";
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
  H5D_fill_value_t given = H5D_FILL_VALUE_ERROR;
  double fill = 0;
  const bool is_given = H5Pfill_value_defined(list.get(), &given) >= 0 && given == H5D_FILL_VALUE_USER_DEFINED;
  if (facts.is_number && is_given && H5Pget_fill_value(list.get(), H5T_NATIVE_DOUBLE, &fill) >= 0) facts.fill = fill;
  const haddr_t offset = H5Dget_offset(dataset);
  const bool here = layout == H5D_CONTIGUOUS && H5Pget_external_count(list.get()) == 0 && offset != HADDR_UNDEF;
  if (here && facts.stored_bytes > 0) facts.offset = offset;
}

// HDF5 demands this of writers only. In a damaged file it takes any chunk, and reads beyond what the chunk decodes to.
void require_possible_chunks(const Hdf5Dataset& facts, const std::filesystem::path& path) {
  for (size_t i = 0; i < facts.chunk.size(); ++i) {
    const bool is_fixed = facts.max_shape[i] >= 0;
    if (facts.chunk[i] > 0 && (!is_fixed || facts.chunk[i] <= facts.max_shape[i])) continue;
    throw DataError("hdf5",
                    cat("chunks larger than their data set: path=", path.string(), ", dataset=", facts.name,
                        ", chunk=", join(facts.chunk, "x"), ", most=", join(facts.max_shape, "x")),
                    "The file is damaged: copy it again");
  }
}

// The library checks this only when an extent is changed.
void require_possible_extents(const Hdf5Dataset& facts, const std::filesystem::path& path) {
  for (size_t i = 0; i < facts.shape.size(); ++i) {
    const bool is_fixed = facts.max_shape[i] >= 0;
    if (facts.shape[i] >= 0 && (!is_fixed || facts.shape[i] <= facts.max_shape[i])) continue;
    throw DataError("hdf5",
                    cat("a data set larger than it may become: path=", path.string(), ", dataset=", facts.name,
                        ", shape=", join(facts.shape, "x"), ", most=", join(facts.max_shape, "x")),
                    "The file is damaged: copy it again");
  }
}

// These filters store the values of a chunk and the bytes of a value among their parameters. The library allocates by these
// numbers, even if they are damaged.
void require_possible_filters(hid_t dataset, size_t value_bytes, const Hdf5Dataset& facts, const std::filesystem::path& path) {
  constexpr size_t kValues = 2, kBytes = 4;  // H5Zscaleoffset.c, H5Znbit.c
  const Hdf5Handle list(H5Dget_create_plist(dataset), H5Pclose);
  uint64_t values = 1;
  for (const int64_t size : facts.chunk) values *= static_cast<uint64_t>(size);
  for (size_t i = 0; i < facts.filters.size(); ++i) {
    unsigned flags = 0, configuration = 0;
    std::array<unsigned, 8> given{};
    size_t count = given.size();
    const H5Z_filter_t filter =
        H5Pget_filter2(list.get(), static_cast<unsigned>(i), &flags, &count, given.data(), 0, nullptr, &configuration);
    if (filter != H5Z_FILTER_SCALEOFFSET && filter != H5Z_FILTER_NBIT) continue;
    if (count > kBytes && given[kValues] == values && given[kBytes] == value_bytes) continue;
    throw DataError(
        "hdf5",
        cat("a filter of other chunks: path=", path.string(), ", dataset=", facts.name, ", filter=", facts.filters[i],
            ", values=", given[kValues], " of ", given[kBytes], " bytes, chunk=", join(facts.chunk, "x"), " of ", value_bytes),
        "The file is damaged: copy it again");
  }
}

std::optional<ChunkStep> chunk_step(H5Z_filter_t filter, std::span<const unsigned> parameters, size_t width) {
  switch (filter) {
    case H5Z_FILTER_DEFLATE:
      return ChunkStep{.filter = ChunkFilter::Deflate};
    case H5Z_FILTER_SHUFFLE:
      return ChunkStep{.filter = ChunkFilter::Shuffle};
    case H5Z_FILTER_FLETCHER32:
      return ChunkStep{.filter = ChunkFilter::Fletcher32};
    default:
      break;
  }
  if (const auto codec = codec_of_hdf5_filter(filter, parameters, width)) {
    return ChunkStep{.filter = ChunkFilter::Compressed, .codec = *codec};
  }
  return {};
}

}  // namespace

std::optional<ChunkLayout> Hdf5File::chunk_layout(std::string_view name) const {
  const Hdf5Lock lock;
  const Hdf5Dataset facts = dataset(name);
  if (!facts.is_plain || facts.chunk.empty() || std::ranges::count(facts.shape, 0) > 0) return {};
  const Hdf5Handle list(H5Dget_create_plist(impl_->dataset(name)), H5Pclose);
  ChunkLayout layout{.shape = facts.shape, .chunk = facts.chunk, .pipeline = {}, .fill = {}};
  const Hdf5Handle type(H5Dget_type(impl_->dataset(name)), H5Tclose);
  layout.pipeline.element_bytes = H5Tget_size(type.get());
  const int num_filters = H5Pget_nfilters(list.get());
  for (int i = 0; i < num_filters; ++i) {
    unsigned flags = 0, configuration = 0;
    std::array<unsigned, 16> parameters{};
    size_t num_parameters = parameters.size();
    const H5Z_filter_t filter = H5Pget_filter2(list.get(), static_cast<unsigned>(i), &flags, &num_parameters, parameters.data(),
                                               0, nullptr, &configuration);
    const std::span given(parameters.data(), std::min(num_parameters, parameters.size()));
    const auto step = chunk_step(filter, given, layout.pipeline.element_bytes);
    if (!step) return {};
    layout.pipeline.filters.push_back(*step);
  }
  layout.fill.resize(layout.pipeline.element_bytes);
  H5Pget_fill_value(list.get(), type.get(), layout.fill.data());
  H5Eclear2(H5E_DEFAULT);
  return layout;
}

ChunkPlace Hdf5File::chunk_place(std::string_view name, const Extents& first_cell) const {
  const Hdf5Lock lock;
  const std::vector<hsize_t> cell(first_cell.begin(), first_cell.end());
  unsigned mask = 0;
  haddr_t offset = HADDR_UNDEF;
  hsize_t bytes = 0;
  if (H5Dget_chunk_info_by_coord(impl_->dataset(name), cell.data(), &mask, &offset, &bytes) < 0) {
    throw hdf5_error(cat("find the chunk from (", join(first_cell, ", "), ") on"), path(), name);
  }
  if (offset == HADDR_UNDEF || bytes == 0) return {};
  if (bytes > std::numeric_limits<uint32_t>::max()) {
    throw DataError("hdf5", cat("a chunk that is too large: path=", path().string(), ", dataset=", name, ", bytes=", bytes),
                    "Make the file again");
  }
  return {.offset = offset, .bytes = static_cast<uint32_t>(bytes), .filter_mask = mask};
}

Hdf5Handle hdf5_two_byte_float(size_t exponent_bits) {
  Hdf5Handle type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  const size_t fraction_bits = 15 - exponent_bits;
  H5Tset_fields(type.get(), 15, fraction_bits, exponent_bits, 0, fraction_bits);
  H5Tset_size(type.get(), 2);
  H5Tset_ebias(type.get(), (size_t{1} << (exponent_bits - 1)) - 1);
  return type;
}

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
  facts.is_plain = facts.is_number && is_plain_type(type.get());
  add_layout(id, rank, facts);
  require_possible_extents(facts, path());
  require_possible_chunks(facts, path());
  require_possible_filters(id, H5Tget_size(type.get()), facts, path());
  H5Eclear2(H5E_DEFAULT);
  return facts;
}

}  // namespace welkin::data
