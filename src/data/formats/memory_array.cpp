// SPDX-License-Identifier: Apache-2.0
#include "data/formats/memory_array.h"

#include "core/error.h"
#include "data/storage/stored_values.h"

namespace welkin::data {
namespace {

class MemoryArray : public StoredArray {
 public:
  MemoryArray(ArrayFacts facts, std::vector<double> values) : StoredArray(std::move(facts)), values_(std::move(values)) {
    WELKIN_CHECK(static_cast<int64_t>(values_.size()) == this->facts().num_values(), "the values do not fill the array");
  }

 protected:
  void read_stored(const ArrayRegion& region, const ValueTarget& target) const override {
    const Extents extent = region.extent();
    Extents stride = c_strides(facts().shape);
    int64_t first = 0;
    for (size_t d = 0; d < stride.size(); ++d) first += region.begin[d] * stride[d];
    for (int64_t& step : stride) step *= static_cast<int64_t>(sizeof(double));
    copy_values({.from = reinterpret_cast<const std::byte*>(values_.data() + first),
                 .type = {Dtype::F64, false},
                 .extent = extent,
                 .from_stride = stride,
                 .to = target.to,
                 .to_double = target.is_double,
                 .to_stride = {target.stride, extent.size()}});
  }

 private:
  std::vector<double> values_;
};

}  // namespace

StoredArrayPtr make_memory_array(ArrayFacts facts, std::vector<double> values) {
  facts.dtype = Dtype::F64;
  return std::make_shared<MemoryArray>(std::move(facts), std::move(values));
}

}  // namespace welkin::data
