// SPDX-License-Identifier: Apache-2.0
// Divisions of a length.
#include "parallel/shard/split.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/text.h"

namespace welkin::parallel {
namespace {

void check_divisible(int64_t size, int64_t parts) {
  if (parts >= 1 && size >= parts) return;
  throw ConfigError("parallel", cat("a length cannot be split without empty parts: length=", size, ", parts=", parts),
                    "Use at most as many ranks along this axis as there are elements");
}

}  // namespace

std::vector<int64_t> balanced_split(int64_t size, int64_t parts) {
  check_divisible(size, parts);
  std::vector<int64_t> sizes(static_cast<size_t>(parts), size / parts);
  for (int64_t part = 0; part < size % parts; ++part) ++sizes[static_cast<size_t>(part)];
  return sizes;
}

std::vector<int64_t> tutorial_split(int64_t size, int64_t parts) {
  check_divisible(size, parts);
  int64_t chunk = (size + parts - 1) / parts;
  int64_t last = std::max<int64_t>(0, size - chunk * (parts - 1));
  if (last == 0) {
    chunk = size / parts;
    last = size - chunk * (parts - 1);
  }
  std::vector<int64_t> sizes(static_cast<size_t>(parts), chunk);
  sizes.back() = last;
  return sizes;
}

int64_t split_offset(const std::vector<int64_t>& sizes, int64_t part) {
  return std::accumulate(sizes.begin(), sizes.begin() + part, int64_t{0});
}

}  // namespace welkin::parallel
