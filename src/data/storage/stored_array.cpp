// SPDX-License-Identifier: Apache-2.0
#include "data/storage/stored_array.h"

#include <algorithm>

#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

[[noreturn]] void refuse_region(const ArrayFacts& facts, const ArrayRegion& region) {
  throw DataError("data",
                  cat("a read outside the array: path=", facts.source, ", begin=", extents_text(region.begin),
                      ", end=", extents_text(region.end), ", shape=", extents_text(facts.shape)),
                  "Check that the file is the one that the run was planned with");
}

void check_region(const ArrayFacts& facts, const ArrayRegion& region) {
  const size_t rank = facts.shape.size();
  if (region.begin.size() != rank || region.end.size() != rank) refuse_region(facts, region);
  for (size_t d = 0; d < rank; ++d) {
    if (region.begin[d] < 0 || region.end[d] < region.begin[d] || region.end[d] > facts.shape[d]) refuse_region(facts, region);
  }
}

bool is_exact_as_float(Dtype dtype) {
  return dtype == Dtype::F16 || dtype == Dtype::BF16 || dtype == Dtype::F32 || dtype_bytes(dtype) <= 2;
}

}  // namespace

Extents ArrayRegion::extent() const {
  Extents result(begin.size());
  for (size_t d = 0; d < begin.size(); ++d) result[d] = end[d] - begin[d];
  return result;
}

int64_t ArrayRegion::num_values() const {
  return checked_product(extent(), [] { throw InternalError("a region that no machine can hold"); });
}

ArrayRegion whole_region(const Extents& shape) { return {Extents(shape.size(), 0), shape}; }

int64_t ArrayFacts::num_values() const {
  return checked_product(shape, [] { throw InternalError("the shape of an array that was not checked"); });
}

StoredArray::StoredArray(ArrayFacts facts) : facts_(std::move(facts)) {
  if (facts_.shape.size() > kMostArrayDims) {
    throw DataError(
        "data",
        cat("an array of too many dimensions: path=", facts_.source, ", dims=", facts_.shape.size(), ", most=", kMostArrayDims),
        "Check the file");
  }
  checked_product(facts_.shape, [&] {
    throw DataError("data", cat("a shape that no machine can hold: path=", facts_.source, ", shape=", extents_text(facts_.shape)),
                    "Check the file");
  });
}

void StoredArray::read(const ArrayRegion& region, float* to, std::span<const int64_t> stride) const {
  if (!facts_.packing || is_exact_as_float(facts_.dtype)) return read_values(region, {to, false, stride.data()});
  // Wide integers are unpacked in double: (i, j, ...) of a dense block, then narrowed.
  check_region(facts_, region);
  std::vector<double> values(static_cast<size_t>(region.num_values()));
  const Extents dense = c_strides(region.extent());
  read_values(region, {values.data(), true, dense.data()});
  if (values.empty()) return;
  const Extents extent = region.extent();
  if (extent.empty()) {
    *to = static_cast<float>(values[0]);
    return;
  }
  for_each_row(extent, stride.data(), [&, row = size_t{0}](int64_t offset) mutable {
    for (int64_t i = 0; i < extent.back(); ++i) to[offset + i * stride.back()] = static_cast<float>(values[row++]);
  });
}

void StoredArray::read(const ArrayRegion& region, double* to, std::span<const int64_t> stride) const {
  read_values(region, {to, true, stride.data()});
}

void StoredArray::read(const ArrayRegion& region, std::span<float> out) const {
  WELKIN_CHECK(static_cast<int64_t>(out.size()) == region.num_values(), "a buffer without the size of the region");
  read(region, out.data(), c_strides(region.extent()));
}

void StoredArray::read(const ArrayRegion& region, std::span<double> out) const {
  WELKIN_CHECK(static_cast<int64_t>(out.size()) == region.num_values(), "a buffer without the size of the region");
  read(region, out.data(), c_strides(region.extent()));
}

void StoredArray::read_values(const ArrayRegion& region, const ValueTarget& target) const {
  check_region(facts_, region);
  if (region.num_values() == 0) return;
  read_stored(region, target);
  if (!facts_.packing) return;
  if (target.is_double) {
    unpack(*facts_.packing, region, static_cast<double*>(target.to), target.stride);
  } else {
    unpack(*facts_.packing, region, static_cast<float*>(target.to), target.stride);
  }
}

std::vector<double> StoredArray::read_doubles(int64_t most) const {
  const int64_t count = facts_.num_values();
  if (count > most) {
    throw DataError("data",
                    cat("the array is too large for its purpose: path=", facts_.source, ", shape=", extents_text(facts_.shape),
                        ", most=", most),
                    "Check that the right file is named");
  }
  std::vector<double> values(static_cast<size_t>(count));
  read(whole_region(facts_.shape), values);
  return values;
}

std::vector<ArrayRegion> StoredArray::pieces(const ArrayRegion& region) const {
  check_region(facts_, region);
  if (region.num_values() == 0) return {};
  std::vector<ArrayRegion> done{region};
  for (size_t d = 0; d < facts_.chunk.size(); ++d) {
    std::vector<ArrayRegion> cut;
    for (const ArrayRegion& piece : done) {
      for (int64_t begin = piece.begin[d]; begin < piece.end[d];) {
        const int64_t end = std::min(piece.end[d], (begin / facts_.chunk[d] + 1) * facts_.chunk[d]);
        cut.push_back(piece);
        cut.back().begin[d] = begin;
        cut.back().end[d] = end;
        begin = end;
      }
    }
    done = std::move(cut);
  }
  return done;
}

StoredArrayPtr ArrayFile::array(std::string_view name) const {
  const auto found = arrays.find(name);
  if (found != arrays.end()) return found->second;
  if (arrays.size() == 1 && arrays.begin()->first.empty()) return arrays.begin()->second;
  const auto refused = not_numbers.find(name);
  constexpr std::string_view kCodec = "codec ";
  if (refused != not_numbers.end() && refused->second.starts_with(kCodec)) {
    throw DataError("data",
                    cat("a codec that cannot be undone: path=", path.string(), ", dataset=", name,
                        ", codec=", refused->second.substr(kCodec.size())),
                    "Write the array again with blosc, zstd or zlib and without other filters, in zarr or xarray");
  }
  if (refused != not_numbers.end()) {
    throw DataError("data",
                    cat("the data set holds no numbers: path=", path.string(), ", dataset=", name, ", dtype=", refused->second),
                    "Store it as float32");
  }
  const auto link = elsewhere.find(name);
  if (link != elsewhere.end()) {
    throw DataError("data",
                    cat("links into other files are not followed: path=", path.string(), ", dataset=", name,
                        ", target=", link->second.substr(0, 400)),
                    "Copy the data into this file, as h5copy and h5py's copy do");
  }
  std::vector<std::string> names;
  for (const auto& [other, array] : arrays) names.push_back(other);
  throw DataError(
      "data", cat("no such data set: path=", path.string(), ", dataset=", name),
      names.empty()
          ? "The file holds no array of numbers that is read. Members and keys of archives are npy files (KEY.fields.npy)"
          : cat("The file holds: ", join(names, ", ").substr(0, 400)));
}

std::vector<std::string> ArrayFile::texts(std::string_view object, std::string_view name) const {
  const auto found = attributes.find(object);
  if (found == attributes.end()) return {};
  const auto value = found->second.find(name);
  if (value == found->second.end()) return {};
  const auto* texts = std::get_if<std::vector<std::string>>(&value->second);
  return texts == nullptr ? std::vector<std::string>{} : *texts;
}

std::vector<double> ArrayFile::numbers(std::string_view object, std::string_view name) const {
  const auto found = attributes.find(object);
  if (found == attributes.end()) return {};
  const auto value = found->second.find(name);
  if (value == found->second.end()) return {};
  const auto* values = std::get_if<std::vector<double>>(&value->second);
  return values == nullptr ? std::vector<double>{} : *values;
}

std::string extents_text(const Extents& shape) { return cat("(", join(shape, ", "), ")"); }

Extents c_strides(const Extents& shape) {
  Extents stride(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) stride[d - 1] = stride[d] * shape[d];
  return stride;
}

}  // namespace welkin::data
