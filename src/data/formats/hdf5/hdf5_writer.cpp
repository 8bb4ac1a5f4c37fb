// SPDX-License-Identifier: Apache-2.0
// An HDF5 file of arrays.
#include <limits>

#include "core/error.h"
#include "data/formats/array_writer.h"
#include "data/formats/hdf5/hdf5_file.h"
#include "data/storage/stored_values.h"

namespace welkin::data {
namespace {

void set_attributes(Hdf5File& file, const std::string& object, const Attributes& attributes) {
  for (const auto& [name, value] : attributes) {
    if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
      texts->size() == 1 ? file.set_string(object, name, texts->front()) : file.set_strings(object, name, *texts);
    }
    if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
      numbers->size() == 1 ? file.set_number(object, name, numbers->front()) : file.set_numbers(object, name, *numbers);
    }
  }
}

class Hdf5Writer : public ArrayWriter {
 public:
  Hdf5Writer(const std::filesystem::path& path, const OutputFile& output)
      : file_(Hdf5File::create(path)), arrays_(output.arrays) {
    set_attributes(file_, "/", output.attributes);
    for (const OutputArray& array : arrays_) create(array);
    for (const auto& [array, values] : output.small) {
      create(array);
      file_.write_bytes(array.name, Extents(array.shape.size(), 0), array.shape, stored_values(values, array.dtype));
    }
  }

  void write(size_t index, const ArrayRegion& region, StoredBlock values) override {
    file_.write_bytes(arrays_[index].name, region.begin, region.extent(), values);
  }

  void finish() override { file_.close(); }

 private:
  void create(const OutputArray& array) {
    Hdf5Create options{.shape = array.shape, .chunk = array.chunk, .dtype = array.dtype};
    for (const Codec& codec : array.codecs) {
      if (codec.kind == CodecKind::Zlib) options.deflate = codec.level;
      if (codec.kind == CodecKind::Zstd || codec.kind == CodecKind::Blosc || codec.kind == CodecKind::Lz4Blocks)
        options.codec = codec;
    }
    file_.create_dataset(array.name, options);
    Attributes attributes = array.attributes;
    if (!array.axes.empty()) attributes["axes"] = array.axes;
    if (array.nan_is_missing) attributes["_FillValue"] = std::vector<double>{std::numeric_limits<double>::quiet_NaN()};
    set_attributes(file_, array.name, attributes);
  }

  Hdf5File file_;
  std::vector<OutputArray> arrays_;
};

}  // namespace

std::unique_ptr<ArrayWriter> make_hdf5_writer(const std::filesystem::path& path, const OutputFile& output) {
  return std::make_unique<Hdf5Writer>(path, output);
}

}  // namespace welkin::data
