// SPDX-License-Identifier: Apache-2.0
// Conversions between tensors and the bytes of files: element types, and row-major values on the CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace welkin::train {

// Throws InternalError for types that no checkpoint holds (complex, quantised).
Dtype stored_dtype(at::ScalarType type);
at::ScalarType tensor_dtype(Dtype dtype);

// The values in row-major order on the CPU; shares the tensor's memory if they already are so.
at::Tensor row_major_on_cpu(const at::Tensor& tensor);
// The bytes of a contiguous CPU tensor, which must outlive the span.
std::span<const std::byte> bytes_of(const at::Tensor& row_major);

// (elements), read-only, valid while the bytes are there. It shares their memory if the alignment allows, else it is a copy.
at::Tensor elements_in(std::span<const std::byte> bytes, at::ScalarType type);

// Copies row-major values into `target` of any device and strides. `bytes` has exactly the size of its dtype and shape.
void copy_bytes_into(std::span<const std::byte> bytes, const at::Tensor& target);

}  // namespace welkin::train
