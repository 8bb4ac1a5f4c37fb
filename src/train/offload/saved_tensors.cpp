// SPDX-License-Identifier: Apache-2.0
#include "train/offload/saved_tensors.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <mutex>

#include "core/error.h"

namespace welkin::train {
namespace {

thread_local SavedTensorTaker* current_taker = nullptr;

class TakenHooks : public torch::autograd::SavedVariableHooks {
 public:
  explicit TakenHooks(SavedTensorTaker& taker) : taker_(taker) {}

  void call_pack_hook(const at::Tensor& tensor) override { saved_ = taker_.take(tensor); }
  at::Tensor call_unpack_hook() override {
    WELKIN_CHECK(saved_ != nullptr, "a saved tensor is asked for before it was saved");
    return saved_->value();
  }

 private:
  SavedTensorTaker& taker_;  // called at once, and not again
  std::unique_ptr<SavedTensor> saved_;
};

// Process-wide, like torch's engine.
class TakingEngine : public torch::autograd::Engine {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (current_taker == nullptr) return nullptr;
    return std::make_unique<TakenHooks>(*current_taker);
  }
};

torch::autograd::Engine& taking_engine() {
  static TakingEngine engine;
  return engine;
}

void install_engine() {
  static std::once_flag once;
  std::call_once(once, [] { torch::autograd::set_default_engine_stub(&taking_engine); });
}

}  // namespace

SavedTensorScope::SavedTensorScope(SavedTensorTaker& taker) : before_(current_taker) {
  install_engine();
  current_taker = &taker;
}

SavedTensorScope::~SavedTensorScope() { current_taker = before_; }

}  // namespace welkin::train
