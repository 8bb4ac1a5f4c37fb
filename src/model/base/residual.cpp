// SPDX-License-Identifier: Apache-2.0
#include "model/base/residual.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>

namespace welkin::model {

at::Tensor add_newest(const at::Tensor& output, const at::Tensor& input, int64_t newest, const std::vector<ResidualRun>& runs) {
  if (runs.empty()) return output.add(input.narrow(1, newest, output.size(1)));
  std::vector<at::Tensor> parts;
  int64_t first = 0;
  for (const ResidualRun& run : runs) {
    const at::Tensor part = output.narrow(1, first, run.channels);
    parts.push_back(run.input < 0 ? part : part.add(input.narrow(1, run.input, run.channels)));
    first += run.channels;
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts, 1);
}

}  // namespace welkin::model
