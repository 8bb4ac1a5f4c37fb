// SPDX-License-Identifier: Apache-2.0
#include "data/formats/file_values.h"

#include <algorithm>

#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

constexpr int64_t kLongRunBytes = 64 << 10;

// The axes from which on the region is one run of bytes both in the file and in the target; the rank when not even the last one
// is.
size_t first_axis_of_run(const Extents& extent, const Extents& byte_stride, const ValueTarget& target, int64_t width) {
  size_t axis = extent.size();
  for (int64_t run = 1; axis > 0; --axis) {
    const size_t d = axis - 1;
    if (extent[d] != 1 && (byte_stride[d] != run * width || target.stride[d] != run)) break;
    run *= extent[d];
  }
  return axis;
}

bool is_stored_like_target(StoredType type, const ValueTarget& target) {
  return !type.big_endian && type.dtype == (target.is_double ? Dtype::F64 : Dtype::F32);
}

// Reads each run of the region separately.
void read_runs(const WatchedFile& file, uint64_t first, const Extents& extent, const Extents& byte_stride,
               const ValueTarget& target, size_t run_axis, int64_t run_bytes) {
  const int64_t width = target.is_double ? 8 : 4;
  Extents index(run_axis, 0);
  for (;;) {
    int64_t from = 0, to = 0;
    for (size_t d = 0; d < run_axis; ++d) from += index[d] * byte_stride[d], to += index[d] * target.stride[d];
    file.read(first + static_cast<uint64_t>(from),
              {static_cast<std::byte*>(target.to) + to * width, static_cast<size_t>(run_bytes)});
    size_t d = run_axis;
    while (d > 0 && ++index[d - 1] == extent[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace

void read_file_values(const WatchedFile& file, uint64_t offset, StoredType type, const ArrayRegion& region,
                      const Extents& byte_stride, const ValueTarget& target) {
  const Extents extent = region.extent();
  const auto width = static_cast<int64_t>(dtype_bytes(type.dtype));
  uint64_t first = offset;
  for (size_t d = 0; d < extent.size(); ++d) first += static_cast<uint64_t>(region.begin[d] * byte_stride[d]);
  if (is_stored_like_target(type, target)) {
    const size_t axis = first_axis_of_run(extent, byte_stride, target, width);
    int64_t run_bytes = width;
    for (size_t d = axis; d < extent.size(); ++d) run_bytes *= extent[d];
    if (run_bytes >= kLongRunBytes) return read_runs(file, first, extent, byte_stride, target, axis, run_bytes);
  }
  file.copy(first, static_cast<uint64_t>(region.num_values() * width), [&](const std::byte* bytes) {
    copy_values({.from = bytes + first,
                 .type = type,
                 .extent = extent,
                 .from_stride = byte_stride,
                 .to = target.to,
                 .to_double = target.is_double,
                 .to_stride = {target.stride, extent.size()}});
  });
}

Extents file_strides(const Extents& shape, Dtype dtype, bool fortran_order) {
  const auto width = static_cast<int64_t>(dtype_bytes(dtype));
  Extents stride = c_strides(fortran_order ? Extents(shape.rbegin(), shape.rend()) : shape);
  if (fortran_order) std::ranges::reverse(stride);
  for (int64_t& step : stride) step *= width;
  return stride;
}

FileArray::FileArray(ArrayFacts facts, std::shared_ptr<const WatchedFile> file, uint64_t offset)
    : StoredArray(std::move(facts)), file_(std::move(file)), offset_(offset) {
  const ArrayFacts& known = this->facts();
  const auto too_big = [&] {
    throw DataError("data", cat("a shape that no machine can hold: path=", known.source, ", shape=", extents_text(known.shape)),
                    "Check the file");
  };
  const auto bytes =
      static_cast<uint64_t>(checked_mul(known.num_values(), static_cast<int64_t>(dtype_bytes(known.dtype)), too_big));
  byte_stride_ = file_strides(known.shape, known.dtype, known.fortran_order);
  if (offset_ <= file_->size() && bytes <= file_->size() - offset_) return;
  throw DataError("data",
                  cat("the file is truncated: path=", known.source, ", offset=", offset_, ", bytes_needed=", bytes,
                      ", bytes_found=", file_->size() - std::min(offset_, file_->size())),
                  "Copy or make it again");
}

void FileArray::read_stored(const ArrayRegion& region, const ValueTarget& target) const {
  read_file_values(*file_, offset_, {facts().dtype, facts().big_endian}, region, byte_stride_, target);
}

std::optional<MappedFloats> FileArray::mapped() const {
  if (facts().dtype != Dtype::F32 || facts().big_endian || offset_ % sizeof(float) != 0) return std::nullopt;
  const std::optional<float> missing = facts().packing ? facts().packing->only_missing() : std::nullopt;
  if (facts().packing && !missing) return std::nullopt;
  MappedFloats floats{.file = file_, .offset = offset_, .stride = byte_stride_, .missing = missing};
  for (int64_t& step : floats.stride) step /= static_cast<int64_t>(sizeof(float));
  return floats;
}

}  // namespace welkin::data
