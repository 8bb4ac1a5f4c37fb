// SPDX-License-Identifier: Apache-2.0
// Copies out of a mapped file.
#include "verify/cases/stored_tensors.h"

#include <ATen/ops/empty.h>

#include <cstring>

#include "core/error.h"
#include "core/text.h"

namespace welkin::verify {
namespace {

at::ScalarType scalar_type_of(Dtype dtype, const std::string& name) {
  switch (dtype) {
    case Dtype::F64:
      return at::kDouble;
    case Dtype::F32:
      return at::kFloat;
    case Dtype::F16:
      return at::kHalf;
    case Dtype::BF16:
      return at::kBFloat16;
    case Dtype::I64:
      return at::kLong;
    case Dtype::I32:
      return at::kInt;
    default:
      throw DataError("reference", cat("a dtype that no reference uses: tensor=", name, ", dtype=", dtype_name(dtype)),
                      "Store it as F64, F32, F16, BF16, I64 or I32");
  }
}

}  // namespace

at::Tensor StoredTensors::get(const std::string& name) const {
  const TensorInfo& info = file_.info(name);
  used_.insert(name);
  at::Tensor tensor = at::empty(info.shape, scalar_type_of(info.dtype, name));
  const std::span<const std::byte> bytes = file_.bytes(name);
  if (!bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

double StoredTensors::number(const std::string& name) const {
  const at::Tensor value = get(name);
  if (value.numel() != 1) {
    throw DataError("reference", cat("one number wanted: tensor=", name, ", elements=", value.numel()), "Check the case's file");
  }
  return value.to(at::kDouble).item<double>();
}

std::vector<std::string> StoredTensors::unused() const {
  std::vector<std::string> left;
  for (const std::string& name : names()) {
    if (!used_.contains(name)) left.push_back(name);
  }
  return left;
}

}  // namespace welkin::verify
