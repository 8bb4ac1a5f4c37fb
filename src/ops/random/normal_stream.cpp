// SPDX-License-Identifier: Apache-2.0
// The kernel computes whole groups of blocks. Doubtful numbers, and numbers outside of whole groups, are computed one by one.
#include "ops/random/normal_stream.h"

#include <array>

#include "core/philox.h"
#include "ops/cpu/elementwise/normal_kernel.h"

namespace welkin::ops {
namespace {

constexpr int64_t kWordsPerBlock = 4;
constexpr int64_t kGroup = kNormalBlocks * kWordsPerBlock;

float normal_at(uint64_t key, int64_t i, double scale) {
  const PhiloxBlock words = philox(key, 0, static_cast<uint64_t>(i / kWordsPerBlock));
  const auto pair = static_cast<size_t>(i % kWordsPerBlock / 2);
  return static_cast<float>(scale * normal_pair(words[2 * pair], words[2 * pair + 1])[static_cast<size_t>(i % 2)]);
}

}  // namespace

void fill_normals(uint64_t key, int64_t first, int64_t count, double scale, float* out) {
  const NormalKernel& kernel = normal_kernel(instruction_set());
  int64_t i = 0;
  for (; i < count && (first + i) % kWordsPerBlock != 0; ++i) out[i] = normal_at(key, first + i, scale);
  std::array<int32_t, kGroup> doubtful{};
  for (; i + kGroup <= count; i += kGroup) {
    const int64_t doubts =
        kernel.normals(key, static_cast<uint64_t>((first + i) / kWordsPerBlock), scale, out + i, doubtful.data());
    for (int64_t d = 0; d < doubts; ++d) {
      const int64_t at = i + doubtful[static_cast<size_t>(d)];
      out[at] = normal_at(key, first + at, scale);
    }
  }
  for (; i < count; ++i) out[i] = normal_at(key, first + i, scale);
}

}  // namespace welkin::ops
