// SPDX-License-Identifier: Apache-2.0
// Hooks for the tensors that autograd saves for the backward pass on this thread. In C++ libtorch offers them through the
// engine: ours calls the taker if there is one, and otherwise acts like torch's own.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace welkin::train {

// A saved tensor that a taker holds.
class SavedTensor {
 public:
  virtual ~SavedTensor() = default;
  virtual at::Tensor value() = 0;  // the value that was saved; may be asked for repeatedly
};

class SavedTensorTaker {
 public:
  virtual ~SavedTensorTaker() = default;
  // `tensor` has no graph.
  virtual std::unique_ptr<SavedTensor> take(const at::Tensor& tensor) = 0;
};

// While it lives, tensors that are saved on this thread go to `taker`.
class SavedTensorScope {
 public:
  explicit SavedTensorScope(SavedTensorTaker& taker);
  ~SavedTensorScope();
  SavedTensorScope(const SavedTensorScope&) = delete;
  SavedTensorScope& operator=(const SavedTensorScope&) = delete;

 private:
  SavedTensorTaker* before_;
};

}  // namespace welkin::train
