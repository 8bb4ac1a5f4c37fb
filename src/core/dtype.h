// SPDX-License-Identifier: Apache-2.0
// Element types of stored tensors, under the names of the safetensors format. Torch-free: the layers above map them to torch's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace welkin {

enum class Dtype : uint8_t { F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, Bool };

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  uint64_t num_bytes;
};

inline constexpr std::array<DtypeRow, 13> kDtypes{{{Dtype::F64, "F64", 8},
                                                   {Dtype::F32, "F32", 4},
                                                   {Dtype::F16, "F16", 2},
                                                   {Dtype::BF16, "BF16", 2},
                                                   {Dtype::I64, "I64", 8},
                                                   {Dtype::I32, "I32", 4},
                                                   {Dtype::I16, "I16", 2},
                                                   {Dtype::I8, "I8", 1},
                                                   {Dtype::U64, "U64", 8},
                                                   {Dtype::U32, "U32", 4},
                                                   {Dtype::U16, "U16", 2},
                                                   {Dtype::U8, "U8", 1},
                                                   {Dtype::Bool, "BOOL", 1}}};

constexpr std::string_view dtype_name(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)].name; }
constexpr uint64_t dtype_bytes(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)].num_bytes; }

constexpr std::optional<Dtype> dtype_of_name(std::string_view name) {
  for (const DtypeRow& row : kDtypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace welkin
