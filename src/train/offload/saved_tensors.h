// SPDX-License-Identifier: Apache-2.0
// Who takes what autograd saves for the backward pass on this thread. libtorch has hooks for it, of which the C++ side is that of
// the engine: ours hands them out where somebody listens, and is torch's own otherwise.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace welkin::train {

// One saved tensor in the hands of its taker.
class SavedTensor {
 public:
  virtual ~SavedTensor() = default;
  virtual at::Tensor value() = 0;  // as it was saved, as often as it is asked for
};

class SavedTensorTaker {
 public:
  virtual ~SavedTensorTaker() = default;
  // `tensor` has no graph.
  virtual std::unique_ptr<SavedTensor> take(const at::Tensor& tensor) = 0;
};

// What is saved on this thread while it lives goes to `taker`.
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
