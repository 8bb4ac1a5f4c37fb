// SPDX-License-Identifier: Apache-2.0
// The generator and its checksum.
#include "verify/cases/formula.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <atomic>
#include <bit>

#include "core/error.h"
#include "core/hash.h"
#include "core/text.h"

namespace welkin::verify {

uint64_t formula_key(const std::string& salt, const std::string& name) { return fnv1a64(salt + ":" + name); }

float formula_value(uint64_t key, uint64_t index, double scale, double offset) {
  uint64_t z = key + (index + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  z ^= z >> 31;
  const double v = static_cast<double>(z >> 11) * 0x1.0p-52 - 1.0;
  return static_cast<float>(offset + scale * v);
}

uint64_t bits_sum(const at::Tensor& values) {
  const at::Tensor flat = values.contiguous();
  const float* data = flat.const_data_ptr<float>();
  std::atomic<uint64_t> total{0};
  at::parallel_for(0, flat.numel(), 65536, [&](int64_t begin, int64_t end) {
    uint64_t sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += std::bit_cast<uint32_t>(data[i]);
    total += sum;
  });
  return total;
}

at::Tensor formula_tensor(const std::string& salt, const std::string& name, const FormulaTensor& formula) {
  at::Tensor tensor = at::empty(formula.shape, at::kFloat);
  float* out = tensor.mutable_data_ptr<float>();
  const uint64_t key = formula_key(salt, name);
  at::parallel_for(0, tensor.numel(), 65536, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = formula_value(key, static_cast<uint64_t>(i), formula.scale, formula.offset);
  });
  for (size_t i = 0; i < formula.first.size() && static_cast<int64_t>(i) < tensor.numel(); ++i) {
    if (static_cast<double>(out[i]) == formula.first[i]) continue;
    throw DataError("reference",
                    cat("a generated tensor differs from its stated first values: tensor=", name, ", element=", i,
                        ", value=", out[i], ", stated=", formula.first[i]),
                    "Check salt, scale and offset in the case's meta.json");
  }
  const uint64_t sum = bits_sum(tensor);
  if (sum != formula.bits_sum) {
    throw DataError("reference",
                    cat("a generated tensor does not have its stated checksum: tensor=", name, ", sum=", hex_digits(sum),
                        ", stated=", hex_digits(formula.bits_sum)),
                    "Check the case's meta.json, and that nothing was compiled with fast-math");
  }
  return tensor;
}

}  // namespace welkin::verify
