// SPDX-License-Identifier: Apache-2.0
// Tensors by formula, the same bits in any language: large reference cases use them instead of stored weights. The README of
// the reference cases has the formula: FNV-1a 64 of "salt:name", splitmix64 by element, offset + scale * v in double, rounded
// to float.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace welkin::verify {

struct FormulaTensor {
  std::vector<int64_t> shape;
  double scale = 1.0;
  double offset = 0.0;
  uint64_t bits_sum = 0;      // expected sum of the float32 bit patterns, modulo 2^64
  std::vector<double> first;  // expected first values, as many as the case states
};

uint64_t formula_key(const std::string& salt, const std::string& name);
// Element `index` of a tensor.
float formula_value(uint64_t key, uint64_t index, double scale, double offset);
// Sum of the float32 bit patterns modulo 2^64.
uint64_t bits_sum(const at::Tensor& values);

// The float32 tensor; DataError when its first values or its checksum are not the expected ones.
at::Tensor formula_tensor(const std::string& salt, const std::string& name, const FormulaTensor& formula);

}  // namespace welkin::verify
