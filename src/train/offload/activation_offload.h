// SPDX-License-Identifier: Apache-2.0
// What a part of a model keeps for its backward pass goes into a store when the next part begins, and comes back before its
// backward pass, while that of the part behind it computes. The last part's stays: its backward pass is the next thing, unless
// another forward pass begins (a pipeline's).
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
  // Storages of `weights` stay where they are, whatever happens to their memory.
  ActivationOffload(std::unique_ptr<ActivationStore> store, const std::vector<at::Tensor>& weights);
  ~ActivationOffload();
  ActivationOffload(const ActivationOffload&) = delete;
  ActivationOffload& operator=(const ActivationOffload&) = delete;

  // It outlives the model's last backward pass. Around all that was installed before.
  void install(model::Site& site);
  // A forward pass begins, while the backward passes of others are to come.
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
