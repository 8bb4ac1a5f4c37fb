// SPDX-License-Identifier: Apache-2.0
// What most files that use torch include, precompiled (cmake/WelkinLayers.cmake). Every file still includes what it uses:
// clang-tidy and builds with WELKIN_PRECOMPILE=OFF see no such header.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>
