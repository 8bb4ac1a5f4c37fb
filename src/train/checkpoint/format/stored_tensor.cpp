// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/format/stored_tensor.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace welkin::train {
namespace {

constexpr std::array<std::pair<Dtype, at::ScalarType>, 10> kTypes{{{Dtype::F64, at::kDouble},
                                                                   {Dtype::F32, at::kFloat},
                                                                   {Dtype::F16, at::kHalf},
                                                                   {Dtype::BF16, at::kBFloat16},
                                                                   {Dtype::I64, at::kLong},
                                                                   {Dtype::I32, at::kInt},
                                                                   {Dtype::I16, at::kShort},
                                                                   {Dtype::I8, at::kChar},
                                                                   {Dtype::U8, at::kByte},
                                                                   {Dtype::Bool, at::kBool}}};

}  // namespace

Dtype stored_dtype(at::ScalarType type) {
  for (const auto& [stored, tensor] : kTypes) {
    if (tensor == type) return stored;
  }
  throw InternalError("a tensor has an element type that checkpoints do not hold");
}

at::ScalarType tensor_dtype(Dtype dtype) {
  for (const auto& [stored, tensor] : kTypes) {
    if (stored == dtype) return tensor;
  }
  throw CheckpointError("checkpoint", "an element type has no tensor",
                        "Store it as one of F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL");
}

at::Tensor row_major_on_cpu(const at::Tensor& tensor) { return tensor.detach().to(at::kCPU).contiguous(); }

std::span<const std::byte> bytes_of(const at::Tensor& row_major) {
  return {static_cast<const std::byte*>(row_major.const_data_ptr()), row_major.nbytes()};
}

// Files of ours have tensors at multiples of their element size; files of others may not.
at::Tensor elements_in(std::span<const std::byte> bytes, at::ScalarType type) {
  const auto width = c10::elementSize(type);
  const std::vector<int64_t> shape{static_cast<int64_t>(bytes.size() / width)};
  if (reinterpret_cast<uintptr_t>(bytes.data()) % width == 0) {
    return at::from_blob(const_cast<std::byte*>(bytes.data()), shape, at::TensorOptions(type));
  }
  at::Tensor aligned = at::empty(shape, at::TensorOptions(type));
  copy_bytes_into(bytes, aligned);
  return aligned;
}

void copy_bytes_into(std::span<const std::byte> bytes, const at::Tensor& target) {
  WELKIN_CHECK(bytes.size() == target.nbytes(), "stored bytes do not fill their tensor");
  const at::NoGradGuard no_grad;
  at::Tensor values = at::empty(target.sizes(), at::TensorOptions(target.scalar_type()));
  if (!bytes.empty()) std::memcpy(values.mutable_data_ptr(), bytes.data(), bytes.size());
  target.detach().copy_(values);
}

}  // namespace welkin::train
