// SPDX-License-Identifier: Apache-2.0
// Stands for torch's header of this name, which includes all operators: those that c10d's headers call (README.md).
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
