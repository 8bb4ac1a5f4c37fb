// SPDX-License-Identifier: Apache-2.0
// Helpers for code that frees a parameter's memory between passes: unshared memory, and a notification when its gradient
// is complete.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace welkin::parallel {

// True if its elements fill its storage, so that freeing it affects nothing else.
bool owns_storage(const at::Tensor& parameter);
// Makes it so, by a copy if needed.
void own_storage(at::Tensor& parameter);

// Each backward pass calls `tell` when the parameter's gradient is accumulated. Only one: a later call replaces it.
void on_gradient(const at::Tensor& parameter, std::function<void()> tell);

}  // namespace welkin::parallel
