// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/synthetic_fields.h"

#include <algorithm>

#include "core/philox.h"

namespace welkin::data {
namespace {

constexpr size_t kPoolValues = size_t{1} << 20, kPoolBlock = size_t{1} << 11, kPoolBlocks = kPoolValues / kPoolBlock;

}  // namespace

SyntheticFields::SyntheticFields(SampleSpec spec, int64_t size, uint64_t seed)
    : spec_(std::move(spec)),
      size_(size),
      key_(stream_key(seed, "synthetic fields")),
      pool_(kPoolValues),
      made_(std::make_unique<std::once_flag[]>(kPoolBlocks)) {}

void SyntheticFields::need(size_t first, size_t count) const {
  for (size_t block = first / kPoolBlock; block * kPoolBlock < first + count; ++block) {
    std::call_once(made_[block], [&] {
      for (size_t i = block * kPoolBlock; i < (block + 1) * kPoolBlock; i += 2) {
        const PhiloxBlock words = philox(key_, 0, i);
        const auto normals = normal_pair(words[0], words[1]);
        pool_[i] = static_cast<float>(normals[0]);
        pool_[i + 1] = static_cast<float>(normals[1]);
      }
    });
  }
}

SamplePlan SyntheticFields::plan(SampleKey key, const Region& wanted) const {
  SamplePlan plan;
  plan.index = key.index;
  plan.region = wanted;
  return plan;
}

void SyntheticFields::read(const SamplePlan& plan, SampleView out) const {
  const PhiloxBlock place = philox(key_, 1, static_cast<uint64_t>(plan.index));
  fill_region(spec_.input, plan.region, out.input, place[0]);
  fill_region(spec_.target, plan.region, out.target, place[1]);
}

// Fills row by row, by the place of each row in the whole sample: a part of a sample has the values of the whole.
void SyntheticFields::fill_region(const ArraySpec& spec, const Region& region, std::span<float> out, uint64_t place) const {
  std::array<int64_t, 3> whole{1, 1, 1}, begin{0, 0, 0}, size{1, 1, 1};  // of a box; a field is one plane
  const size_t dims = spec.shape.size() - 1;
  for (size_t d = 0; d < dims; ++d) {
    const size_t to = 3 - dims + d;
    whole[to] = spec.shape[d + 1];
    begin[to] = region.begin[d];
    size[to] = region.extent[d];
  }
  if (size == whole || out.empty()) return fill(out, place);
  const auto row_values = static_cast<size_t>(size[2]);
  for (int64_t channel = 0; channel < spec.shape[0]; ++channel) {
    for (int64_t plane = begin[0]; plane < begin[0] + size[0]; ++plane) {
      for (int64_t row = begin[1]; row < begin[1] + size[1]; ++row) {
        const int64_t at = ((channel * whole[0] + plane) * whole[1] + row) * whole[2] + begin[2];
        fill(out.first(row_values), place % kPoolValues + static_cast<uint64_t>(at));
        out = out.subspan(row_values);
      }
    }
  }
}

void SyntheticFields::fill(std::span<float> out, uint64_t place) const {
  auto first = static_cast<size_t>(place % kPoolValues);
  while (!out.empty()) {
    const size_t count = std::min(out.size(), kPoolValues - first);
    need(first, count);
    std::copy_n(pool_.begin() + static_cast<std::ptrdiff_t>(first), count, out.begin());
    out = out.subspan(count);
    first = 0;
  }
}

}  // namespace welkin::data
