// SPDX-License-Identifier: Apache-2.0
// An HDF5 file of arrays.
#include <algorithm>
#include <limits>
#include <map>

#include "core/error.h"
#include "core/text.h"
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

// What netCDF-4 calls a dimension that has no values; readers leave such data sets out.
std::string placeholder_title(int64_t length) {
  std::string digits = cat(length);
  return cat("This is a netCDF dimension but not a netCDF variable.", std::string(10 - std::min<size_t>(10, digits.size()), ' '),
             digits);
}

// Finds a dimension scale for each axis that has a name: the array of that name along it, in the array's group or one above, or
// else a data set without values, which is to be made.
class ScaleFinder {
 public:
  explicit ScaleFinder(const OutputFile& output) {
    for (const OutputArray& array : output.arrays) arrays_[array.name] = &array;
    for (const auto& [array, values] : output.small) arrays_[array.name] = &array;
  }

  DimensionScales find() {
    for (const auto& [name, array] : arrays_) {
      if (!has_names(*array)) continue;
      std::vector<std::string> scales;
      for (size_t d = 0; d < array->shape.size(); ++d) scales.push_back(scale_of(*array, d));
      for (const std::string& scale : scales) found_.titles.try_emplace(scale, scale.substr(scale.rfind('/') + 1));
      if (scales != std::vector<std::string>{name}) found_.of_arrays[name] = std::move(scales);
    }
    for (const auto& [name, length] : placeholders_) found_.titles[name] = placeholder_title(length);
    return std::move(found_);
  }

  const std::map<std::string, int64_t>& placeholders() const { return placeholders_; }

 private:
  static bool has_names(const OutputArray& array) {
    const auto is_usable = [](const std::string& name) {
      return !name.empty() && name.size() < 256 && name != "." && name.find_first_of(std::string_view("/\0", 2)) == name.npos;
    };
    return !array.shape.empty() && array.axes.size() == array.shape.size() && std::ranges::all_of(array.axes, is_usable);
  }

  bool is_scale(const std::string& place, const std::string& name, int64_t length) const {
    const auto found = arrays_.find(place);
    return found != arrays_.end() && found->second->shape == Extents{length} &&
           found->second->axes == std::vector<std::string>{name};
  }

  // By an array or a group.
  bool is_taken(const std::string& place) const {
    const auto next = arrays_.lower_bound(place + "/");
    return arrays_.contains(place) || (next != arrays_.end() && next->first.starts_with(place + "/"));
  }

  std::string scale_of(const OutputArray& array, size_t axis) {
    const std::string& name = array.axes[axis];
    const int64_t length = array.shape[axis];
    const std::string own = array.name.substr(0, array.name.rfind('/') + 1);
    for (std::string group = own;; group.pop_back(), group.resize(group.rfind('/') + 1)) {
      if (is_scale(group + name, name, length)) return group + name;
      if (group.empty()) break;
    }
    // An array of another shape may have the name, or an axis of another length.
    for (int number = 1;; ++number) {
      std::string place = cat(own, name, number == 1 ? "" : cat("_", number));
      if (!is_taken(place) && placeholders_.try_emplace(place, length).first->second == length) return place;
    }
  }

  std::map<std::string, const OutputArray*> arrays_;
  std::map<std::string, int64_t> placeholders_;  // by name, with their lengths
  DimensionScales found_;
};

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
    ScaleFinder finder(output);
    const DimensionScales scales = finder.find();
    for (const auto& [name, length] : finder.placeholders()) file_.create_dataset(name, {.shape = {length}});
    file_.set_dimension_scales(scales);
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
