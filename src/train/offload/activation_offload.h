// SPDX-License-Identifier: Apache-2.0
// The activations that a part of a model saves for its backward pass move to a store when the next part begins. They come back
// before its backward pass, while the part behind it computes. The last part's stay: its backward pass is next, unless another
// forward pass begins (a pipeline's).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <unordered_set>
#include <vector>

#include "model/base/site.h"
#include "train/offload/activation_store.h"

namespace welkin::train {

class SavedPart;

class ActivationOffload {
 public:
  // Storages of `weights` stay where they are, even if their memory is offloaded.
  ActivationOffload(std::unique_ptr<ActivationStore> store, const std::vector<at::Tensor>& weights);
  ~ActivationOffload();
  ActivationOffload(const ActivationOffload&) = delete;
  ActivationOffload& operator=(const ActivationOffload&) = delete;

  // The object outlives the model's last backward pass. The wrapper surrounds all that was installed before.
  void install(model::Site& site);
  // Called when a forward pass begins while backward passes of others are still to come.
  void begin_pass();

  const ActivationStore& store() const { return *store_; }
  int64_t stored_bytes() const { return stored_bytes_; }  // since the start

 private:
  model::Tensors run(model::Tensors in, const model::Body& body);
  bool stays(const at::Tensor& tensor) const;
  void move_out(SavedPart& part);

  friend class PartTaker;

  std::unique_ptr<ActivationStore> store_;
  std::unordered_set<const void*> weights_;
  std::weak_ptr<SavedPart> newest_;
  int64_t stored_bytes_ = 0;
};

}  // namespace welkin::train
