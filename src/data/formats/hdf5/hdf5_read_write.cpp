// SPDX-License-Identifier: Apache-2.0
// Reads and writes hyperslabs, and creates data sets.
#include <array>

#include "core/checked.h"
#include "core/text.h"
#include "data/formats/hdf5/hdf5_filters.h"
#include "data/formats/hdf5/hdf5_handle.h"

namespace welkin::data {
namespace {

constexpr int64_t kMostWhole = int64_t{1} << 26;

std::vector<hsize_t> to_sizes(const Extents& extents) { return {extents.begin(), extents.end()}; }

std::string text_of(const Extents& extents) { return cat("(", join(extents, ", "), ")"); }

[[noreturn]] void refuse_slab(const Hdf5File& file, std::string_view name, const Extents& begin, const Extents& extent,
                              const Extents& shape) {
  throw DataError("hdf5",
                  cat("a read or write outside the data set: path=", file.path().string(), ", dataset=", name,
                      ", begin=", text_of(begin), ", extent=", text_of(extent), ", shape=", text_of(shape)),
                  "Check that the file is the one that the run was planned with");
}

bool is_inside(const Extents& begin, const Extents& extent, const Extents& shape) {
  if (begin.size() != shape.size() || extent.size() != shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (begin[i] < 0 || extent[i] < 0 || begin[i] > shape[i] || extent[i] > shape[i] - begin[i]) return false;
  }
  return true;
}

// The selected file space and a memory space of the same number of elements.
struct Slab {
  Hdf5Handle file_space;
  Hdf5Handle memory_space;
};

Slab select_slab(const Hdf5File& file, hid_t dataset, std::string_view name, const Extents& begin, const Extents& extent,
                 size_t num_values) {
  Slab slab;
  slab.file_space = Hdf5Handle(H5Dget_space(dataset), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(slab.file_space.get());
  std::vector<hsize_t> sizes(static_cast<size_t>(std::max(rank, 0)));
  H5Sget_simple_extent_dims(slab.file_space.get(), sizes.data(), nullptr);
  const Extents shape(sizes.begin(), sizes.end());
  if (!is_inside(begin, extent, shape)) refuse_slab(file, name, begin, extent, shape);
  const int64_t count = checked_product(extent, [&] { refuse_slab(file, name, begin, extent, shape); });
  WELKIN_CHECK(static_cast<size_t>(count) == num_values, "the buffer does not have the size of the hyperslab");
  const auto first = to_sizes(begin), size = to_sizes(extent);
  if (rank > 0 && H5Sselect_hyperslab(slab.file_space.get(), H5S_SELECT_SET, first.data(), nullptr, size.data(), nullptr) < 0) {
    throw hdf5_error("select a hyperslab", file, name);
  }
  const hsize_t flat = num_values;
  slab.memory_space = Hdf5Handle(H5Screate_simple(1, &flat, nullptr), H5Sclose);
  return slab;
}

template <typename T>
constexpr Hdf5Type kTypeOf = Hdf5Type::Float32;
template <>
constexpr Hdf5Type kTypeOf<double> = Hdf5Type::Float64;
template <>
constexpr Hdf5Type kTypeOf<int64_t> = Hdf5Type::Int64;

void check_is_number(const Hdf5File& file, hid_t dataset, std::string_view name) {
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type.get());
  if (kind == H5T_FLOAT || kind == H5T_INTEGER) return;
  throw DataError(
      "hdf5",
      cat("the data set holds no numbers: path=", file.path().string(), ", dataset=", name, ", dtype=", file.dataset(name).dtype),
      "Convert it to float32");
}

// Names the filter that is absent. HDF5's own error would name a folder of plug-ins.
void check_filters(const Hdf5File& file, hid_t dataset, std::string_view name) {
  const Hdf5Handle list(H5Dget_create_plist(dataset), H5Pclose);
  const int num_filters = H5Pget_nfilters(list.get());
  for (int i = 0; i < num_filters; ++i) {
    unsigned flags = 0, configuration = 0;
    size_t num_values = 0;
    std::array<char, 64> stored_name{};
    const H5Z_filter_t filter = H5Pget_filter2(list.get(), static_cast<unsigned>(i), &flags, &num_values, nullptr,
                                               stored_name.size() - 1, stored_name.data(), &configuration);
    if (H5Zfilter_avail(filter) > 0) continue;
    std::string known(stored_name.data());
    std::erase_if(known, [](char c) { return c <= ' ' || c > '~'; });  // it comes from the file
    throw DataError("hdf5",
                    cat("a filter that cannot be undone: path=", file.path().string(), ", dataset=", name, ", filter=", filter,
                        known.empty() ? "" : cat(" (", known, ")")),
                    "Write the data set again with gzip, in h5py or, where that filter is installed, with h5repack -f GZIP=4");
  }
}

template <typename T>
void read_slab(const Hdf5File& file, hid_t dataset, std::string_view name, const Extents& begin, const Extents& extent,
               std::span<T> out) {
  check_is_number(file, dataset, name);
  const Slab slab = select_slab(file, dataset, name, begin, extent, out.size());
  if (out.empty()) return;
  const hid_t type = hdf5_memory_type(kTypeOf<T>);
  if (H5Dread(dataset, type, slab.memory_space.get(), slab.file_space.get(), H5P_DEFAULT, out.data()) < 0) {
    const DataError error = hdf5_error(cat("read from ", text_of(begin), " on"), file, name);
    check_filters(file, dataset, name);
    throw error;
  }
}

template <typename T>
void write_slab(const Hdf5File& file, hid_t dataset, std::string_view name, const Extents& begin, const Extents& extent,
                std::span<const T> values) {
  const Slab slab = select_slab(file, dataset, name, begin, extent, values.size());
  if (values.empty()) return;
  const hid_t type = hdf5_memory_type(kTypeOf<T>);
  if (H5Dwrite(dataset, type, slab.memory_space.get(), slab.file_space.get(), H5P_DEFAULT, values.data()) < 0) {
    throw hdf5_error("write", file, name);
  }
}

template <typename T>
std::vector<T> read_whole(const Hdf5File& file, std::string_view name) {
  const Extents shape = file.dataset(name).shape;
  const auto refuse = [&] {
    throw DataError("hdf5",
                    cat("the data set is too large for its purpose: path=", file.path().string(), ", dataset=", name,
                        ", shape=", text_of(shape)),
                    "Check the file");
  };
  const int64_t count = checked_product(shape, refuse);
  if (count > kMostWhole) refuse();
  std::vector<T> values(static_cast<size_t>(count));
  file.read(name, Extents(shape.size(), 0), shape, std::span<T>(values));
  return values;
}

Hdf5Handle stored_type_of(Dtype dtype) {
  const auto copy = [](hid_t type) { return Hdf5Handle(H5Tcopy(type), H5Tclose); };
  switch (dtype) {
    case Dtype::F64:
      return copy(H5T_IEEE_F64LE);
    case Dtype::F32:
      return copy(H5T_IEEE_F32LE);
    case Dtype::F16:
      return hdf5_two_byte_float(5);
    case Dtype::BF16:
      return hdf5_two_byte_float(8);
    case Dtype::I64:
      return copy(H5T_STD_I64LE);
    case Dtype::I32:
      return copy(H5T_STD_I32LE);
    case Dtype::I16:
      return copy(H5T_STD_I16LE);
    case Dtype::I8:
      return copy(H5T_STD_I8LE);
    case Dtype::U64:
      return copy(H5T_STD_U64LE);
    case Dtype::U32:
      return copy(H5T_STD_U32LE);
    case Dtype::U16:
      return copy(H5T_STD_U16LE);
    case Dtype::U8:
    case Dtype::Bool:
      return copy(H5T_STD_U8LE);
  }
  return {};
}

hid_t stored_type(Hdf5Type type) {
  switch (type) {
    case Hdf5Type::Float32:
      return H5T_IEEE_F32LE;
    case Hdf5Type::Float64:
      return H5T_IEEE_F64LE;
    case Hdf5Type::Int32:
      return H5T_STD_I32LE;
    case Hdf5Type::Int64:
      return H5T_STD_I64LE;
  }
  return H5I_INVALID_HID;
}

Hdf5Handle creation_list(const Hdf5Create& options) {
  Hdf5Handle list(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER);  // everything is written by the caller: no pass of zeros over a big box
  H5Pset_obj_track_times(list.get(), 0);              // the same values are the same bytes, whenever they are written
  if (options.chunk.empty()) return list;
  const auto chunk = to_sizes(options.chunk);
  H5Pset_chunk(list.get(), static_cast<int>(chunk.size()), chunk.data());
  const bool shuffles_itself = options.codec && options.codec->kind == CodecKind::Blosc;
  if (options.deflate > 0 || (options.codec && !shuffles_itself)) H5Pset_shuffle(list.get());
  if (options.deflate > 0) H5Pset_deflate(list.get(), static_cast<unsigned>(options.deflate));
  if (options.codec) {
    size_t chunk_bytes = options.codec->width;
    for (const int64_t extent : options.chunk) chunk_bytes *= static_cast<size_t>(extent);
    const Hdf5FilterSettings settings = hdf5_filter_of(*options.codec, chunk_bytes);
    H5Pset_filter(list.get(), settings.filter, H5Z_FLAG_MANDATORY, settings.parameters.size(), settings.parameters.data());
  }
  return list;
}

}  // namespace

void Hdf5File::read(std::string_view name, const Extents& begin, const Extents& extent, std::span<float> out) const {
  const Hdf5Lock lock;
  read_slab(*this, impl_->dataset(name), name, begin, extent, out);
}
void Hdf5File::read(std::string_view name, const Extents& begin, const Extents& extent, std::span<double> out) const {
  const Hdf5Lock lock;
  read_slab(*this, impl_->dataset(name), name, begin, extent, out);
}
void Hdf5File::read(std::string_view name, const Extents& begin, const Extents& extent, std::span<int64_t> out) const {
  const Hdf5Lock lock;
  read_slab(*this, impl_->dataset(name), name, begin, extent, out);
}

std::vector<double> Hdf5File::read_doubles(std::string_view name) const { return read_whole<double>(*this, name); }
std::vector<int64_t> Hdf5File::read_integers(std::string_view name) const { return read_whole<int64_t>(*this, name); }

void Hdf5File::create_dataset(std::string_view name, const Hdf5Create& options) {
  const Hdf5Lock lock;
  WELKIN_CHECK(options.chunk.empty() || options.chunk.size() == options.shape.size(), "chunk and shape differ in rank");
  WELKIN_CHECK(!options.chunk.empty() || (!options.growing && options.deflate == 0 && !options.codec),
               "growing and compression need chunks");
  const auto size = to_sizes(options.shape);
  auto most = size;
  if (options.growing) most.front() = H5S_UNLIMITED;
  const Hdf5Handle space(H5Screate_simple(static_cast<int>(size.size()), size.data(), most.data()), H5Sclose);
  const Hdf5Handle list = creation_list(options);
  const Hdf5Handle type =
      options.dtype ? stored_type_of(*options.dtype) : Hdf5Handle(H5Tcopy(stored_type(options.type)), H5Tclose);
  const Hdf5Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links.get(), 1);  // "group/x"
  Hdf5Handle handle(
      H5Dcreate2(impl_->file.get(), std::string(name).c_str(), type.get(), space.get(), links.get(), list.get(), H5P_DEFAULT),
      H5Dclose);
  if (!space || !handle) throw hdf5_error("create the data set", *this, name);
  impl_->datasets.insert_or_assign(std::string(name), std::move(handle));
}

void Hdf5File::extend(std::string_view name, int64_t length) {
  const Hdf5Lock lock;
  auto size = to_sizes(dataset(name).shape);
  size.at(0) = static_cast<hsize_t>(length);
  if (H5Dset_extent(impl_->dataset(name), size.data()) < 0) throw hdf5_error("extend", *this, name);
}

void Hdf5File::write(std::string_view name, const Extents& begin, const Extents& extent, std::span<const float> values) {
  const Hdf5Lock lock;
  write_slab(*this, impl_->dataset(name), name, begin, extent, values);
}
void Hdf5File::write(std::string_view name, const Extents& begin, const Extents& extent, std::span<const double> values) {
  const Hdf5Lock lock;
  write_slab(*this, impl_->dataset(name), name, begin, extent, values);
}
void Hdf5File::write(std::string_view name, const Extents& begin, const Extents& extent, std::span<const int64_t> values) {
  const Hdf5Lock lock;
  write_slab(*this, impl_->dataset(name), name, begin, extent, values);
}

void Hdf5File::write_bytes(std::string_view name, const Extents& begin, const Extents& extent,
                           std::span<const std::byte> values) {
  const Hdf5Lock lock;
  const hid_t dataset = impl_->dataset(name);
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose);
  const Slab slab = select_slab(*this, dataset, name, begin, extent, values.size() / H5Tget_size(type.get()));
  if (values.empty()) return;
  if (H5Dwrite(dataset, type.get(), slab.memory_space.get(), slab.file_space.get(), H5P_DEFAULT, values.data()) < 0) {
    throw hdf5_error("write", *this, name);
  }
}

}  // namespace welkin::data
