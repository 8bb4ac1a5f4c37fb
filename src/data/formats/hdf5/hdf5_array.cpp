// SPDX-License-Identifier: Apache-2.0
// The data sets of an HDF5 file as arrays: values that lie in the file as they are, and chunks of the usual filters, are read
// without HDF5 by any number of threads, others through it.
#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "data/formats/file_values.h"
#include "data/formats/formats.h"
#include "data/formats/hdf5/hdf5_chunks.h"
#include "data/formats/hdf5/hdf5_file.h"

namespace welkin::data {
namespace {

class Hdf5Array : public StoredArray {
 public:
  Hdf5Array(ArrayFacts facts, std::shared_ptr<const Hdf5File> file) : StoredArray(std::move(facts)), file_(std::move(file)) {}

 protected:
  void read_stored(const ArrayRegion& region, const ValueTarget& target) const override {
    if (target.is_double) return read_as<double>(region, target);
    read_as<float>(region, target);
  }

 private:
  template <typename T>
  void read_as(const ArrayRegion& region, const ValueTarget& target) const {
    const Extents extent = region.extent(), dense = c_strides(extent);
    auto* to = static_cast<T*>(target.to);
    const auto count = static_cast<size_t>(region.num_values());
    if (std::equal(dense.begin(), dense.end(), target.stride)) {
      return file_->read(facts().name, region.begin, extent, std::span<T>(to, count));
    }
    std::vector<T> values(count);
    file_->read(facts().name, region.begin, extent, std::span<T>(values));
    Extents byte_stride = dense;
    for (int64_t& step : byte_stride) step *= static_cast<int64_t>(sizeof(T));
    copy_values({.from = reinterpret_cast<const std::byte*>(values.data()),
                 .type = {sizeof(T) == 8 ? Dtype::F64 : Dtype::F32, false},
                 .extent = extent,
                 .from_stride = byte_stride,
                 .to = target.to,
                 .to_double = target.is_double,
                 .to_stride = {target.stride, extent.size()}});
  }

  std::shared_ptr<const Hdf5File> file_;
};

class ChunkedHdf5Array : public StoredArray {
 public:
  ChunkedHdf5Array(ArrayFacts facts, std::unique_ptr<const Hdf5Chunks> chunks)
      : StoredArray(std::move(facts)), chunks_(std::move(chunks)) {}
  uint64_t bytes_requested() const override { return chunks_->bytes_requested(); }

 protected:
  void read_stored(const ArrayRegion& region, const ValueTarget& target) const override {
    chunks_->read(region, {facts().dtype, facts().big_endian}, target);
  }

 private:
  std::unique_ptr<const Hdf5Chunks> chunks_;
};

Attributes attributes_of(const Hdf5File& file, const std::string& object) {
  Attributes attributes;
  for (const std::string& name : file.attribute_names(object)) {
    try {
      if (file.is_string_attribute(object, name)) {
        attributes[name] = file.strings(object, name);
      } else {
        attributes[name] = file.numbers(object, name);
      }
    } catch (const DataError&) {  // references, compounds: nothing that a reader of arrays needs
    }
  }
  return attributes;
}

std::optional<Dtype> dtype_of(const Hdf5Dataset& dataset) {
  static constexpr std::pair<std::string_view, Dtype> kRows[] = {
      {"float64", Dtype::F64}, {"float32", Dtype::F32}, {"int64", Dtype::I64},   {"int32", Dtype::I32},
      {"int16", Dtype::I16},   {"int8", Dtype::I8},     {"uint64", Dtype::U64},  {"uint32", Dtype::U32},
      {"uint16", Dtype::U16},  {"uint8", Dtype::U8},    {"float16", Dtype::F16}, {"bfloat16", Dtype::BF16}};
  const std::string_view name = std::string_view(dataset.dtype).substr(0, dataset.dtype.find(' '));
  for (const auto& [known, dtype] : kRows) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

void add_hdf5_array(ArrayFile& file, const std::shared_ptr<const Hdf5File>& hdf5, const std::shared_ptr<const WatchedFile>& bytes,
                    const std::shared_ptr<ChunkCache>& cache, const std::string& name) {
  const Hdf5Dataset dataset = hdf5->dataset(name);
  const auto dtype = dtype_of(dataset);
  const Attributes& attributes = file.attributes[name] = attributes_of(*hdf5, name);
  if (!dataset.is_number || !dtype) {
    file.not_numbers[name] = dataset.dtype;
    if (auto texts = hdf5->text_values(name); !texts.empty()) file.text_arrays[name] = std::move(texts);
    return;
  }
  ArrayFacts facts{.source = cat(file.path.string(), ", dataset=", name),
                   .name = name,
                   .shape = dataset.shape,
                   .chunk = dataset.chunk,
                   .codecs = dataset.filters,
                   .axes = {},
                   .packing = {}};
  facts.dtype = *dtype;
  facts.big_endian = dataset.dtype.ends_with("big-endian");
  facts.stored_bytes = dataset.stored_bytes;
  facts.axes = file.texts(name, "axes");
  if (facts.axes.empty()) facts.axes = hdf5->dimension_names(name);
  // The netCDF library sets its fill value on arrays that it makes, whether or not an attribute says it.
  add_packing(attributes, facts, dataset.fill == netcdf_fill(*dtype) ? dataset.fill : std::nullopt);
  if (dataset.offset && dataset.is_plain) {
    file.arrays[name] = std::make_shared<FileArray>(std::move(facts), bytes, *dataset.offset);
    return;
  }
  std::optional<ChunkLayout> layout = hdf5->chunk_layout(name);
  if (layout && Hdf5Chunks::can_hold(*layout)) {
    file.arrays[name] = std::make_shared<ChunkedHdf5Array>(
        std::move(facts), std::make_unique<Hdf5Chunks>(hdf5, bytes, name, std::move(*layout), cache));
    return;
  }
  file.arrays[name] = std::make_shared<Hdf5Array>(std::move(facts), hdf5);
}

}  // namespace

ArrayFile open_hdf5_arrays(const std::filesystem::path& path) {
  return open_hdf5_arrays(path, std::make_shared<ChunkCache>(kChunkCacheBytes));
}

ArrayFile open_hdf5_arrays(const std::filesystem::path& path, std::shared_ptr<ChunkCache> cache) {
  return open_hdf5_arrays(std::make_shared<const Hdf5File>(Hdf5File::open(path)), std::move(cache));
}

ArrayFile open_hdf5_arrays(const std::shared_ptr<const Hdf5File>& hdf5, std::shared_ptr<ChunkCache> cache) {
  ArrayFile file{.path = hdf5->path(), .format = "HDF5", .arrays = {}, .not_numbers = {}, .attributes = {}};
  file.attributes[""] = attributes_of(*hdf5, "/");
  for (auto& [name, target] : hdf5->external_links()) file.elsewhere[name] = target;
  const auto bytes = std::make_shared<const WatchedFile>(hdf5->path());
  for (const std::string& name : hdf5->dataset_names()) add_hdf5_array(file, hdf5, bytes, cache, name);
  return file;
}

}  // namespace welkin::data
