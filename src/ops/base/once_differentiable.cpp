// SPDX-License-Identifier: Apache-2.0
#include "ops/base/once_differentiable.h"

#include <ATen/core/grad_mode.h>

#include "core/error.h"
#include "core/text.h"

namespace welkin::ops {

// Autograd disables gradient mode in a backward pass, unless the pass is to build a graph.
void once_differentiable(std::string_view what) {
  if (!at::GradMode::is_enabled()) return;
  throw ConfigError("ops", cat("the gradient can be taken once only: operator=", what, ", create_graph=true"),
                    "Leave out create_graph, or use the operators of aten for what is to be differentiated twice");
}

}  // namespace welkin::ops
