// SPDX-License-Identifier: Apache-2.0
#include "data/storage/array_views.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "data/storage/axis_names.h"
#include "data/storage/stored_values.h"

namespace welkin::data {
namespace {

template <typename T>
std::vector<T> reordered(const std::vector<T>& values, const std::vector<size_t>& order) {
  if (values.empty()) return {};
  std::vector<T> result;
  for (const size_t axis : order) result.push_back(values[axis]);
  return result;
}

ArrayFacts permuted_facts(const ArrayFacts& facts, const std::vector<size_t>& order) {
  ArrayFacts result = facts;
  result.shape = reordered(facts.shape, order);
  result.chunk = reordered(facts.chunk, order);
  result.axes = reordered(facts.axes, order);
  result.packing.reset();  // the array itself undoes it
  return result;
}

class PermutedArray : public StoredArray {
 public:
  PermutedArray(StoredArrayPtr array, std::vector<size_t> order)
      : StoredArray(permuted_facts(array->facts(), order)), array_(std::move(array)), order_(std::move(order)) {}

  std::optional<MappedFloats> mapped() const override {
    auto floats = array_->mapped();
    if (floats) floats->stride = reordered(floats->stride, order_);
    return floats;
  }
  uint64_t bytes_requested() const override { return array_->bytes_requested(); }

 protected:
  void read_stored(const ArrayRegion& region, const ValueTarget& target) const override {
    const size_t rank = array_->facts().shape.size();
    ArrayRegion inner{Extents(rank, 0), Extents(rank, 1)};
    Extents stride(rank, 1);
    for (size_t d = 0; d < order_.size(); ++d) {
      inner.begin[order_[d]] = region.begin[d];
      inner.end[order_[d]] = region.end[d];
      stride[order_[d]] = target.stride[d];
    }
    if (target.is_double) return array_->read(inner, static_cast<double*>(target.to), stride);
    array_->read(inner, static_cast<float*>(target.to), stride);
  }

 private:
  StoredArrayPtr array_;
  std::vector<size_t> order_;
};

ArrayFacts chosen_facts(ArrayFacts facts, size_t channels) {
  facts.shape[1] = static_cast<int64_t>(channels);
  if (!facts.chunk.empty()) facts.chunk[1] = 1;  // a channel is read by itself
  facts.packing.reset();                         // the array itself undoes it
  return facts;
}

class ChosenChannels : public StoredArray {
 public:
  ChosenChannels(StoredArrayPtr array, std::vector<int64_t> places)
      : StoredArray(chosen_facts(array->facts(), places.size())), array_(std::move(array)), places_(std::move(places)) {}

  uint64_t bytes_requested() const override { return array_->bytes_requested(); }

 protected:
  void read_stored(const ArrayRegion& region, const ValueTarget& target) const override {
    for (int64_t channel = region.begin[1]; channel < region.end[1]; ++channel) {
      const int64_t place = places_[static_cast<size_t>(channel)], offset = (channel - region.begin[1]) * target.stride[1];
      ArrayRegion one = region;
      one.begin[1] = std::max<int64_t>(place, 0), one.end[1] = one.begin[1] + 1;
      if (target.is_double) {
        read_channel(one, static_cast<double*>(target.to) + offset, target.stride, place >= 0);
      } else {
        read_channel(one, static_cast<float*>(target.to) + offset, target.stride, place >= 0);
      }
    }
  }

 private:
  template <typename T>
  void read_channel(const ArrayRegion& region, T* to, const int64_t* stride, bool is_here) const {
    const Extents extent = region.extent();
    if (is_here) return array_->read(region, to, {stride, extent.size()});
    const int64_t step = stride[extent.size() - 1];
    for_each_row(extent, stride, [&](int64_t offset) {
      for (int64_t i = 0; i < extent.back(); ++i) to[offset + i * step] = std::numeric_limits<T>::quiet_NaN();
    });
  }

  StoredArrayPtr array_;
  std::vector<int64_t> places_;
};

ArrayFacts held_facts(ArrayFacts facts) {
  facts.chunk.clear();
  facts.codecs.clear();
  facts.dtype = Dtype::F32;
  facts.big_endian = facts.fortran_order = false;
  facts.packing.reset();
  return facts;
}

class HeldValues : public StoredArray {
 public:
  explicit HeldValues(const StoredArray& array) : StoredArray(held_facts(array.facts())), byte_stride_(c_strides(facts().shape)) {
    for (int64_t& step : byte_stride_) step *= static_cast<int64_t>(sizeof(float));
    values_.resize(static_cast<size_t>(facts().num_values()));
    array.read(whole_region(facts().shape), values_);
  }

 protected:
  void read_stored(const ArrayRegion& region, const ValueTarget& target) const override {
    const Extents extent = region.extent();
    int64_t first = 0;
    for (size_t d = 0; d < extent.size(); ++d) first += region.begin[d] * byte_stride_[d];
    copy_values({.from = reinterpret_cast<const std::byte*>(values_.data()) + first,
                 .type = {},
                 .extent = extent,
                 .from_stride = byte_stride_,
                 .to = target.to,
                 .to_double = target.is_double,
                 .to_stride = {target.stride, extent.size()}});
  }

 private:
  Extents byte_stride_;
  std::vector<float> values_;
};

}  // namespace

StoredArrayPtr permuted(StoredArrayPtr array, const std::vector<size_t>& order) {
  const Extents& shape = array->facts().shape;
  for (size_t d = 0; d < shape.size(); ++d)
    WELKIN_CHECK(shape[d] == 1 || std::ranges::count(order, d) == 1, "a permutation without an axis");
  const bool is_same = order.size() == shape.size() && std::is_sorted(order.begin(), order.end());
  return is_same ? array : std::make_shared<PermutedArray>(std::move(array), order);
}

StoredArrayPtr with_channels(StoredArrayPtr array, std::vector<int64_t> places) {
  WELKIN_CHECK(array->facts().shape.size() > 1, "an array without channels");
  const int64_t channels = array->facts().shape[1];
  bool is_same = static_cast<int64_t>(places.size()) == channels;
  for (size_t i = 0; i < places.size(); ++i) {
    WELKIN_CHECK(places[i] < channels, "a channel that the array does not have");
    is_same = is_same && places[i] == static_cast<int64_t>(i);
  }
  return is_same ? array : std::make_shared<ChosenChannels>(std::move(array), std::move(places));
}

StoredArrayPtr held(const StoredArray& array) { return std::make_shared<HeldValues>(array); }

StoredArrayPtr with_axes(StoredArrayPtr array, const std::vector<std::vector<std::string_view>>& wanted) {
  const auto& axes = array->facts().axes;
  if (axes.size() != wanted.size()) return array;
  std::vector<size_t> order;
  for (const auto& names : wanted) {
    for (size_t d = 0; d < axes.size(); ++d) {
      if (is_among(names, axes[d]) && std::ranges::count(order, d) == 0) {
        order.push_back(d);
        break;
      }
    }
  }
  return order.size() == wanted.size() ? permuted(std::move(array), order) : array;
}

}  // namespace welkin::data
