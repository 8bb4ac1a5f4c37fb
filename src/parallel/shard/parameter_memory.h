// SPDX-License-Identifier: Apache-2.0
// What those need who let go of a parameter's memory between passes: memory that is its own, and the moment at which its gradient
// is there.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace welkin::parallel {

// Whether its elements fill its storage, so that nobody else loses anything with it.
bool owns_storage(const at::Tensor& parameter);
// Afterwards it does; copied where it did not.
void own_storage(at::Tensor& parameter);

// `tell` is called in each backward pass when the parameter's gradient is accumulated. One at a time: a later call replaces it.
void on_gradient(const at::Tensor& parameter, std::function<void()> tell);

}  // namespace welkin::parallel
