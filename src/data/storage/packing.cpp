// SPDX-License-Identifier: Apache-2.0
// Reads from the attributes of an array the scale and offset of its stored values, and the values that stand for missing ones.
#include <algorithm>
#include <array>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/text.h"
#include "data/storage/axis_names.h"
#include "data/storage/stored_array.h"
#include "data/storage/stored_values.h"

namespace welkin::data {
namespace {

// A text that is a number counts as one: some writers store it so.
std::vector<double> numbers_in(const Attributes& attributes, std::string_view name) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return {};
  if (const auto* values = std::get_if<std::vector<double>>(&found->second)) return *values;
  std::vector<double> numbers;
  for (const std::string& text : std::get<std::vector<std::string>>(found->second)) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
    numbers.push_back(number);
  }
  return numbers;
}

[[noreturn]] void refuse_packing(const ArrayFacts& facts, std::string_view why, std::string_view remedy) {
  throw DataError(
      "data",
      cat("a packing that does not fit its array: path=", facts.source, ", shape=", extents_text(facts.shape), ", reason=", why),
      remedy);
}

[[noreturn]] void refuse_scales(const ArrayFacts& facts, std::string_view why) {
  refuse_packing(facts, why, "Give scale_factor and add_offset one number, or one for each index along the axis scale_axis");
}

void read_scales(const Attributes& attributes, const ArrayFacts& facts, Packing& packing) {
  packing.scale = numbers_in(attributes, "scale_factor");
  packing.offset = numbers_in(attributes, "add_offset");
  if (packing.scale.empty()) packing.scale.assign(std::max<size_t>(packing.offset.size(), 1), 1.0);
  if (packing.offset.empty()) packing.offset.assign(packing.scale.size(), 0.0);
  if (packing.scale.size() != packing.offset.size()) refuse_scales(facts, "scale_factor and add_offset differ in size");
  const auto axis = numbers_in(attributes, "scale_axis");
  if (!axis.empty() && (axis.size() != 1 || !(axis[0] >= 0) || axis[0] >= static_cast<double>(facts.shape.size()))) {
    refuse_scales(facts, "scale_axis is no axis");
  }
  if (!axis.empty()) packing.axis = static_cast<size_t>(axis[0]);
  if (packing.scale.size() > 1 && (axis.empty() || static_cast<int64_t>(packing.scale.size()) != facts.shape[packing.axis])) {
    refuse_scales(facts, "the number of scales is not the extent of scale_axis");
  }
  const auto finite = [](double value) { return std::isfinite(value); };
  if (!std::ranges::all_of(packing.scale, finite) || !std::ranges::all_of(packing.offset, finite)) {
    refuse_scales(facts, "a scale that is not finite");
  }
}

bool is_float(Dtype dtype) { return dtype == Dtype::F64 || dtype == Dtype::F32 || dtype == Dtype::F16 || dtype == Dtype::BF16; }

// The value as the type of the array holds it: 1e20 is another number in float32.
double as_stored(double value, Dtype dtype) {
  const double largest = dtype == Dtype::F64 ? HUGE_VAL : dtype == Dtype::F16 ? 65504.0 : static_cast<double>(FLT_MAX);
  if (!is_float(dtype) || !(std::abs(value) <= largest) || std::isinf(value)) return value;
  std::array<std::byte, 8> bytes{};
  store_values(&value, 1, dtype, bytes.data());
  double stored = 0;
  const int64_t one = 1;
  copy_values({.from = bytes.data(),
               .type = {dtype, false},
               .extent = {&one, 1},
               .from_stride = {&one, 1},
               .to = &stored,
               .to_double = true,
               .to_stride = {&one, 1}});
  return stored;
}

void read_missing(const Attributes& attributes, const ArrayFacts& facts, std::optional<double> undeclared, Packing& packing) {
  constexpr size_t kMostMissing = 64;  // each is compared with every value
  if (numbers_in(attributes, "missing_value").size() > kMostMissing) {
    refuse_packing(facts, "more than 64 missing values", "Name one value that stands for the missing ones");
  }
  for (const char* name : {"_FillValue", "missing_value"}) {
    for (const double value : numbers_in(attributes, name)) {
      if (std::isnan(value)) continue;
      packing.missing.push_back(value);
      if (packing.unsigned_range != 0) packing.missing.push_back(value - packing.unsigned_range);
      if (const double stored = as_stored(value, facts.dtype); stored != value) packing.missing.push_back(stored);
    }
  }
  if (undeclared) packing.missing.push_back(*undeclared);
}

// Bounds of an integer array that are no integers are meant for the unpacked values.
double in_stored_units(double bound, const ArrayFacts& facts, const Packing& packing) {
  if (is_float(facts.dtype) || bound == std::nearbyint(bound) || packing.scale.size() != 1) return as_stored(bound, facts.dtype);
  return (bound - packing.offset[0]) / packing.scale[0];
}

void read_valid(const Attributes& attributes, const ArrayFacts& facts, Packing& packing) {
  std::vector<double> range = numbers_in(attributes, "valid_range");
  if (!range.empty() && range.size() != 2) {
    refuse_packing(facts, cat("valid_range has ", range.size(), " numbers"), "Give valid_range the lowest and the highest value");
  }
  const auto low = numbers_in(attributes, "valid_min"), high = numbers_in(attributes, "valid_max");
  if (range.empty()) range.assign(2, std::numeric_limits<double>::quiet_NaN());
  if (!low.empty()) range[0] = low[0];
  if (!high.empty()) range[1] = high[0];
  std::optional<double> bounds[2];
  for (size_t i = 0; i < 2; ++i) {
    if (std::isnan(range[i])) continue;
    bounds[i] = in_stored_units(range[i], facts, packing);
    if (packing.unsigned_range > 0 && *bounds[i] < 0) *bounds[i] += packing.unsigned_range;
  }
  const bool negative = packing.scale.size() == 1 && packing.scale[0] < 0 && bounds[0] && bounds[1] && *bounds[0] > *bounds[1];
  if (negative) std::swap(bounds[0], bounds[1]);
  if (bounds[0] && bounds[1] && *bounds[0] > *bounds[1]) {
    refuse_packing(facts, "the lowest valid value is above the highest", "Repair valid_range, valid_min or valid_max");
  }
  packing.valid_min = bounds[0], packing.valid_max = bounds[1];
}

// The number that _Unsigned adds to negative integers; it is negative where unsigned integers stand for signed ones.
double unsigned_range_of(const Attributes& attributes, Dtype dtype) {
  const auto found = attributes.find("_Unsigned");
  if (found == attributes.end()) return 0;
  const auto* texts = std::get_if<std::vector<std::string>>(&found->second);
  if (texts == nullptr || texts->size() != 1) return 0;
  constexpr std::array kSigned{Dtype::I8, Dtype::I16, Dtype::I32}, kUnsigned{Dtype::U8, Dtype::U16, Dtype::U32};
  constexpr std::array kRanges{0x1p8, 0x1p16, 0x1p32};
  for (size_t i = 0; i < kRanges.size(); ++i) {
    if (dtype == kSigned[i] && is_same_name(texts->front(), "true")) return kRanges[i];
    if (dtype == kUnsigned[i] && is_same_name(texts->front(), "false")) return -kRanges[i];
  }
  return 0;
}

bool has_any(const Attributes& attributes, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(names, [&](std::string_view name) { return !numbers_in(attributes, name).empty(); });
}

struct RowUnpacking {
  const Packing& packing;
  double scale, offset;
  bool scaled = scale != 1.0 || offset != 0.0;

  double value(double stored) const {
    for (const double missing : packing.missing) {
      if (stored == missing) return std::numeric_limits<double>::quiet_NaN();
    }
    const double range = packing.unsigned_range;
    if (range > 0 ? stored < 0 : range < 0 && stored >= -range / 2) stored += range;
    if ((packing.valid_min && stored < *packing.valid_min) || (packing.valid_max && stored > *packing.valid_max)) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    return scaled ? stored * scale + offset : stored;
  }
};

template <typename T>
void unpack_values(const Packing& packing, const ArrayRegion& region, T* to, const int64_t* stride) {
  Extents extent = region.extent();
  Extents steps(stride, stride + extent.size());
  const bool one = packing.scale.size() == 1;
  const int64_t first = one ? 0 : region.begin[packing.axis];
  const int64_t count = one ? 1 : extent[packing.axis];
  const int64_t step = one ? 0 : steps[packing.axis];
  if (!one) extent[packing.axis] = 1;
  if (extent.empty()) extent = {1}, steps = {1};
  for (int64_t i = 0; i < count; ++i) {
    const auto which = static_cast<size_t>(first + i);
    const RowUnpacking row{packing, packing.scale[which], packing.offset[which]};
    for_each_row(extent, steps.data(), [&](int64_t offset) {
      T* values = to + i * step + offset;
      for (int64_t j = 0; j < extent.back(); ++j) {
        T& value = values[j * steps.back()];
        value = static_cast<T>(row.value(static_cast<double>(value)));
      }
    });
  }
}

}  // namespace

bool Packing::is_scaled() const {
  const auto is = [](const std::vector<double>& values, double wanted) {
    return std::ranges::all_of(values, [&](double value) { return value == wanted; });
  };
  return !is(scale, 1.0) || !is(offset, 0.0) || unsigned_range != 0;
}

std::optional<float> Packing::only_missing() const {
  std::vector<float> floats;
  for (const double value : missing) {
    const auto stored = static_cast<float>(value);
    if (static_cast<double>(stored) == value && std::ranges::count(floats, stored) == 0) floats.push_back(stored);
  }
  return is_scaled() || valid_min || valid_max || floats.size() != 1 ? std::nullopt : std::optional(floats.front());
}

std::optional<double> netcdf_fill(Dtype dtype) {
  switch (dtype) {
    case Dtype::I16:
      return -32767;
    case Dtype::U16:
      return 65535;
    case Dtype::I32:
      return -2147483647;
    case Dtype::U32:
      return 4294967295;
    case Dtype::I64:
      return -9223372036854775806.0;
    case Dtype::U64:
      return 18446744073709551614.0;
    case Dtype::F32:
    case Dtype::F64:
      return 0x1.ep+122;  // 9.96921e36
    default:
      return std::nullopt;
  }
}

bool is_usual_fill(float value) {
  constexpr std::array kUsual{-999.0F, -9999.0F, -99999.0F, -32767.0F, -32768.0F, 1e15F, 1e20F,       -1e20F,  1e30F,
                              -1e30F,  1e34F,    -1e34F,    1e35F,     -1e35F,    1e36F, 0x1.ep+122F, FLT_MAX, -FLT_MAX};
  return std::ranges::find(kUsual, value) != kUsual.end();
}

std::string undeclared_fill_line(std::string_view channel, float value) {
  return cat("this value usually stands for a missing one, and no attribute declares it: channel=", channel, ", value=", value,
             ". If it does, give the variable the attribute _FillValue");
}

void add_packing(const Attributes& attributes, ArrayFacts& facts, std::optional<double> undeclared) {
  if (attributes.contains("_FillValue")) undeclared.reset();
  Packing packing{.scale = {}, .offset = {}};
  read_scales(attributes, facts, packing);
  packing.unsigned_range = unsigned_range_of(attributes, facts.dtype);
  read_missing(attributes, facts, undeclared, packing);
  read_valid(attributes, facts, packing);
  constexpr std::array<std::string_view, 5> kDeclarations{"_FillValue", "missing_value", "valid_range", "valid_min", "valid_max"};
  const bool is_declared = std::ranges::any_of(kDeclarations, [&](std::string_view name) { return attributes.contains(name); });
  facts.missing = is_declared ? Missing::Declared : undeclared ? Missing::Undeclared : Missing::None;
  const bool limited = !packing.missing.empty() || packing.valid_min || packing.valid_max;
  if (!has_any(attributes, {"scale_factor", "add_offset"}) && packing.unsigned_range == 0 && !limited) return;
  facts.packing = std::move(packing);
}

void unpack(const Packing& packing, const ArrayRegion& region, float* to, const int64_t* stride) {
  unpack_values(packing, region, to, stride);
}

void unpack(const Packing& packing, const ArrayRegion& region, double* to, const int64_t* stride) {
  unpack_values(packing, region, to, stride);
}

}  // namespace welkin::data
