// SPDX-License-Identifier: Apache-2.0
// The content of a Zarr folder, a WebDataset tar file, an LMDB or a raw file.
#include <algorithm>

#include "core/printable.h"
#include "core/process/host.h"
#include "core/text.h"
#include "data/formats/array_file.h"
#include "data/tools/inspect_hdf5.h"

namespace welkin::data {
namespace {

std::string attribute_line(const AttributeValue& value) {
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) return printable(join(*texts, ", "));
  return printable(join(std::get<std::vector<double>>(value), ", "));
}

void add_attributes_of(const ArrayFile& file, const std::string& object, std::string& text) {
  const auto found = file.attributes.find(object);
  if (found == file.attributes.end()) return;
  for (const auto& [name, value] : found->second) {
    if (!is_format_attribute(file, object, name)) text += cat("    ", printable(name), " = ", attribute_line(value), "\n");
  }
}

std::string facts_line(const ArrayFacts& facts) {
  std::string text = cat(extents_text(facts.shape), "  ", dtype_name(facts.dtype), facts.big_endian ? " big-endian" : "",
                         facts.fortran_order ? "  Fortran order" : "");
  if (!facts.axes.empty()) text += cat("  axes ", printable(join(facts.axes, ", ")));
  text += facts.chunk.empty() ? "" : cat("  chunks ", extents_text(facts.chunk));
  text += facts.codecs.empty() ? "" : cat(" ", join(facts.codecs, "+"));
  return text + (facts.packing && facts.packing->is_scaled() ? "  scaled" : "");
}

// The range of values in a few evenly spread slabs along the first axis.
std::string range_line(const StoredArray& array, int64_t most_values) {
  const Extents& shape = array.facts().shape;
  if (shape.empty() || std::ranges::count(shape, 0) > 0) return "";
  const int64_t slab = array.facts().num_values() / shape[0];
  if (slab > most_values) return "    values: not sampled: one slab is too large\n";
  const int64_t count = std::clamp<int64_t>(most_values / slab, 1, shape[0]);
  RunningMoments moments;
  std::vector<float> values(static_cast<size_t>(slab));
  for (int64_t i = 0; i < count; ++i) {
    ArrayRegion region = whole_region(shape);
    region.begin[0] = count == 1 ? 0 : (shape[0] - 1) * i / (count - 1);
    region.end[0] = region.begin[0] + 1;
    array.read(region, values);
    moments.add(values);
  }
  return cat("    values", count < shape[0] ? " of a sample: " : ": ", moments_text(moments, array.facts().missing), "\n");
}

}  // namespace

std::string inspect_arrays(const std::filesystem::path& path, const InspectOptions& options) {
  const ArrayFile file = open_array_file(path);
  std::string text = cat(file.format, ", ", file.arrays.size(), " arrays\n");
  add_attributes_of(file, "", text);
  int64_t rows = 0;
  for (const auto& [name, array] : file.arrays) {
    if (rows++ == options.most_datasets)
      return text + cat("  ... and ", file.arrays.size() - static_cast<size_t>(rows) + 1, " more\n");
    text += cat("  ", name.empty() ? "(no name)" : printable(name), "  ", facts_line(array->facts()), "\n");
    if (!name.empty()) add_attributes_of(file, name, text);
    const std::string coordinate = coordinate_lines(file, name);
    text += coordinate.empty() ? range_line(*array, options.most_sampled_values) : coordinate;
    text += assumed_latitudes_line(file, name);
  }
  for (const auto& [name, why] : file.not_numbers) {
    const std::string texts = text_line(file, name);
    text += texts.empty() ? cat("  ", printable(name), "  not read: ", printable(why), "\n")
                          : cat("  ", printable(name), "\n", texts);
  }
  return text;
}

}  // namespace welkin::data
