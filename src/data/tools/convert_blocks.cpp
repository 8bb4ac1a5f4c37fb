// SPDX-License-Identifier: Apache-2.0
// The blocks in which arrays are read and written, and their way through double to the stored type.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/text.h"
#include "data/storage/stored_values.h"
#include "data/tools/convert_plan.h"

namespace welkin::data {
namespace {

struct TypeLimits {
  double min = 0, max = 0;
};

std::optional<TypeLimits> integer_limits(Dtype dtype) {
  const auto limits = [](auto type) {
    using T = decltype(type);
    return TypeLimits{static_cast<double>(std::numeric_limits<T>::min()), static_cast<double>(std::numeric_limits<T>::max())};
  };
  switch (dtype) {
    case Dtype::I64:
    case Dtype::U64:
      return TypeLimits{dtype == Dtype::U64 ? 0 : -0x1p53, 0x1p53};  // beyond it a double is not exact
    case Dtype::I32:
      return limits(int32_t{});
    case Dtype::I16:
      return limits(int16_t{});
    case Dtype::I8:
      return limits(int8_t{});
    case Dtype::U32:
      return limits(uint32_t{});
    case Dtype::U16:
      return limits(uint16_t{});
    case Dtype::U8:
    case Dtype::Bool:
      return limits(uint8_t{});
    default:
      return std::nullopt;
  }
}

std::optional<double> largest_float(Dtype dtype) {
  if (dtype == Dtype::F16) return 65504.0;
  if (dtype == Dtype::BF16) return 0x1.FEp127;
  if (dtype == Dtype::F32) return static_cast<double>(std::numeric_limits<float>::max());
  return std::nullopt;
}

[[noreturn]] void refuse_misfit(const OutputArray& array, const ArrayRegion& block, double value) {
  throw DataError("data",
                  cat("a value that does not fit its type: dataset=", array.name, ", block_from=", extents_text(block.begin),
                      ", value=", value, ", dtype=", dtype_name(array.dtype)),
                  "Choose a wider --dtype, or int16, which is scaled");
}

void check_values(const OutputArray& array, const ArrayRegion& block, const std::vector<double>& values) {
  if (const auto limits = integer_limits(array.dtype)) {
    for (const double value : values) {
      if (!(value >= limits->min && value <= limits->max)) refuse_misfit(array, block, value);
    }
  } else if (const auto largest = largest_float(array.dtype)) {
    for (const double value : values) {
      if (std::isfinite(value) && std::abs(value) > *largest) refuse_misfit(array, block, value);
    }
  }
}

// Packs in place. Values of a channel that never changes become 0.
void pack_values(const Packing& packing, const ArrayRegion& block, std::vector<double>& values) {
  int64_t run = 1;
  for (size_t d = packing.axis + 1; d < block.begin.size(); ++d) run *= block.end[d] - block.begin[d];
  const bool one = packing.scale.size() == 1;
  const int64_t channels = one ? 1 : block.end[packing.axis] - block.begin[packing.axis];
  const int64_t first = one ? 0 : block.begin[packing.axis];
  for (size_t i = 0; i < values.size(); ++i) {
    const auto c = static_cast<size_t>(one ? 0 : first + static_cast<int64_t>(i) / run % channels);
    const double packed = std::nearbyint((values[i] - packing.offset[c]) / packing.scale[c]);
    values[i] = std::isnan(values[i]) ? packing.missing.front() : std::clamp(packed, -32767.0, 32767.0);
  }
}

void write_block(const Conversion& conversion, size_t index, const OutputArray& array, const ArrayRegion& block,
                 ArrayWriter& writer) {
  ArrayRegion from = block;
  for (size_t d = 0; d < from.begin.size(); ++d)
    from.begin[d] += conversion.region.begin[d], from.end[d] += conversion.region.begin[d];
  std::vector<double> values(static_cast<size_t>(block.num_values()));
  conversion.from->read(from, values);
  if (conversion.packing) pack_values(*conversion.packing, block, values);
  check_values(array, block, values);
  writer.write(index, block, stored_values(values, array.dtype));
}

}  // namespace

std::vector<ArrayRegion> blocks_of(const Extents& shape, const Extents& chunk, uint64_t most_values) {
  const auto most = static_cast<int64_t>(std::max<uint64_t>(1, most_values));
  Extents block = chunk.empty() ? Extents(shape.size(), 1) : chunk;
  int64_t size = 1;
  for (const int64_t extent : block) size *= extent;
  for (size_t d = shape.size(); d-- > 0;) {
    // Takes as many whole chunks along this axis as fit; the axes before it follow only when this one is whole.
    const int64_t rest = size / block[d];
    const int64_t needed = (shape[d] + block[d] - 1) / block[d],
                  room = std::max<int64_t>(1, most / std::max<int64_t>(1, rest) / block[d]);
    block[d] *= std::min(needed, room);
    size = rest * block[d];
    if (room < needed) break;
  }
  std::vector<ArrayRegion> blocks{{{}, {}}};
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<ArrayRegion> longer;
    for (const ArrayRegion& part : blocks) {
      for (int64_t begin = 0; begin < shape[d]; begin += block[d]) {
        longer.push_back(part);
        longer.back().begin.push_back(begin);
        longer.back().end.push_back(std::min(shape[d], begin + block[d]));
      }
    }
    blocks = std::move(longer);
  }
  return blocks;
}

void write_array(const Conversion& conversion, size_t index, const OutputArray& array, uint64_t block_bytes,
                 ArrayWriter& writer) {
  for (const ArrayRegion& block : blocks_of(array.shape, array.chunk, block_bytes / sizeof(double))) {
    write_block(conversion, index, array, block, writer);
  }
}

void write_samples(const ConvertPlan& plan, uint64_t block_bytes, ArrayWriter& writer) {
  int64_t most = 0;
  for (const OutputArray& array : plan.output.arrays) most = std::max(most, array.shape[0]);
  for (int64_t sample = 0; sample < most; ++sample) {
    for (size_t i = 0; i < plan.output.arrays.size(); ++i) {
      const OutputArray& array = plan.output.arrays[i];
      if (sample >= array.shape[0]) continue;
      Extents one = array.shape;
      one[0] = 1;
      for (ArrayRegion block : blocks_of(one, {}, block_bytes / sizeof(double))) {
        block.begin[0] = sample;
        block.end[0] = sample + 1;
        write_block(plan.conversions[i], i, array, block, writer);
      }
    }
  }
}

}  // namespace welkin::data
