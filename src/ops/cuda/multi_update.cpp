// SPDX-License-Identifier: Apache-2.0
// The functions of ops/update/device_update.h on CUDA tensors. Workspaces come from torch's allocator on the current stream;
// it reuses them only after this stream has finished with them.
#include "ops/cuda/multi_update.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "ops/device/device_ops.h"
#include "ops/update/device_update.h"

namespace welkin::ops {
namespace {

const float* scalar_on(const at::Tensor& scalar, c10::Device device, const char* name) {
  TORCH_CHECK(scalar.device() == device && scalar.scalar_type() == at::kFloat && scalar.numel() == 1,
              "device_update: one float32 on the device of the weights: ", name);
  return scalar.const_data_ptr<float>();
}

// The runs are on the device of `rate`: the optimizer's lists belong to one device.
template <typename Rule, typename Settings>
void update_all(const std::vector<UpdateSpan>& runs, const Settings& settings, const UpdateScalars& scalars, bool counts_steps) {
  const c10::Device device = scalars.rate.device();
  TORCH_CHECK(device.type() == device_ops().update.device, "device_update: the rate must stand on the GPU of the weights");
  const c10::cuda::CUDAGuard guard(device);
  const ScalarPointers pointers{.rate = scalar_on(scalars.rate, device, "rate"),
                                .gradient_scale = scalar_on(scalars.gradient_scale, device, "gradient_scale"),
                                .found_inf = scalar_on(scalars.found_inf, device, "found_inf"),
                                .steps = counts_steps ? scalar_on(scalars.steps, device, "steps") : nullptr};
  const auto bytes = static_cast<int64_t>(sizeof(PreparedRule<Rule>));
  const at::Tensor space = at::empty({bytes}, at::TensorOptions(at::kByte).device(device));
  auto* rule = reinterpret_cast<PreparedRule<Rule>*>(space.mutable_data_ptr<uint8_t>());
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  C10_CUDA_CHECK(prepare_update(settings, pointers, rule, stream));
  for (const UpdateTable& table : update_tables(runs)) C10_CUDA_CHECK(launch_update(table, rule, stream));
}

void adam_on_cuda(const std::vector<UpdateSpan>& runs, const AdamSettings& settings, const UpdateScalars& scalars) {
  update_all<AdamRule>(runs, settings, scalars, /*counts_steps=*/true);
}

void sgd_on_cuda(const std::vector<UpdateSpan>& runs, const SgdSettings& settings, const UpdateScalars& scalars) {
  update_all<SgdRule>(runs, settings, scalars, /*counts_steps=*/false);
}

at::Tensor norm_on_cuda(const std::vector<FloatSpan>& runs, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  const std::vector<UpdateTable> tables = norm_tables(runs);
  int64_t pieces = 0;
  for (const UpdateTable& table : tables) pieces += table.first_piece[table.num_tensors];
  const at::Tensor partials = at::empty({pieces}, at::TensorOptions(at::kDouble).device(device));
  at::Tensor norm = at::empty({}, at::TensorOptions(at::kFloat).device(device));
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  auto* place = partials.mutable_data_ptr<double>();
  for (const UpdateTable& table : tables) {
    C10_CUDA_CHECK(launch_square_sums(table, place, stream));
    place += table.first_piece[table.num_tensors];
  }
  C10_CUDA_CHECK(launch_norm(partials.const_data_ptr<double>(), pieces, norm.mutable_data_ptr<float>(), stream));
  return norm;
}

const bool kUpdatesRegistered = [] {
  device_ops().update = {.device = c10::kCUDA, .adam = &adam_on_cuda, .sgd = &sgd_on_cuda, .norm = &norm_on_cuda};
  return true;
}();

}  // namespace
}  // namespace welkin::ops
