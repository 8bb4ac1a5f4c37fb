// SPDX-License-Identifier: Apache-2.0
#include "data/synthetic_fields.h"

#include <algorithm>

#include "core/philox.h"

namespace welkin::data {
namespace {

constexpr size_t kPoolValues = size_t{1} << 20;

}  // namespace

SyntheticFields::SyntheticFields(SampleSpec spec, int64_t size, uint64_t seed)
    : spec_(std::move(spec)), size_(size), key_(stream_key(seed, "synthetic fields")), pool_(kPoolValues) {
  for (size_t i = 0; i < kPoolValues; i += 2) {
    const PhiloxBlock words = philox(key_, 0, i);
    const auto normals = normal_pair(words[0], words[1]);
    pool_[i] = static_cast<float>(normals[0]);
    pool_[i + 1] = static_cast<float>(normals[1]);
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
  fill(out.input, place[0]);
  fill(out.target, place[1]);
}

void SyntheticFields::fill(std::span<float> out, uint64_t place) const {
  auto first = static_cast<size_t>(place % kPoolValues);
  while (!out.empty()) {
    const size_t count = std::min(out.size(), kPoolValues - first);
    std::copy_n(pool_.begin() + static_cast<std::ptrdiff_t>(first), count, out.begin());
    out = out.subspan(count);
    first = 0;
  }
}

}  // namespace welkin::data
