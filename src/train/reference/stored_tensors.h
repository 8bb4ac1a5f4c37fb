// SPDX-License-Identifier: Apache-2.0
// Tensors of a safetensors file as torch tensors, for comparison with a reference.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/safetensors.h"

namespace welkin::train::reference {

class StoredTensors {
 public:
  // DataError when the file is absent or malformed.
  explicit StoredTensors(const std::filesystem::path& path) : file_(path) {}

  const std::vector<std::string>& names() const { return file_.names(); }
  bool contains(const std::string& name) const { return file_.contains(name); }
  // A copy on the CPU, in the stored dtype. DataError when absent or of a dtype that torch lacks.
  at::Tensor get(const std::string& name) const;
  // A one-element tensor as a number.
  double number(const std::string& name) const;

 private:
  SafetensorsFile file_;
};

// The file `stem`.safetensors of a folder, nothing when there is none.
std::optional<StoredTensors> open_stored(const std::filesystem::path& folder, const std::string& stem);

}  // namespace welkin::train::reference
