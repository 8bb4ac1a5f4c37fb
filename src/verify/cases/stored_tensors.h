// SPDX-License-Identifier: Apache-2.0
// Tensors of a safetensors file as torch tensors, for comparison with a reference.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/archive/safetensors.h"

namespace welkin::verify {

class StoredTensors {
 public:
  // DataError when the file is absent or malformed.
  explicit StoredTensors(const std::filesystem::path& path) : file_(path) {}

  const std::vector<std::string>& names() const { return file_.names(); }
  bool contains(const std::string& name) const { return file_.contains(name); }
  const TensorInfo& info(const std::string& name) const { return file_.info(name); }
  // A copy on the CPU, in the stored dtype. DataError when absent or of a dtype that torch lacks.
  at::Tensor get(const std::string& name) const;
  // A one-element tensor as a number.
  double number(const std::string& name) const;
  // Tensors that get() was never asked for, in the order of the file.
  std::vector<std::string> unused() const;

 private:
  SafetensorsFile file_;
  mutable std::set<std::string, std::less<>> used_;
};

}  // namespace welkin::verify
