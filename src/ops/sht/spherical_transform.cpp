// SPDX-License-Identifier: Apache-2.0
#include "ops/sht/spherical_transform.h"

#include <ATen/ops/bmm.h>
#include <ATen/ops/fft_irfft.h>
#include <ATen/ops/fft_rfft.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <torch/csrc/autograd/custom_function.h>

#include <numbers>
#include <optional>

#include "core/error.h"
#include "core/text.h"
#include "ops/base/autocast.h"
#include "ops/base/once_differentiable.h"
#include "ops/sht/legendre.h"
#include "ops/sht/quadrature.h"

namespace welkin::ops {
namespace {

constexpr const char* kForward = "forward";  // the forward transform to wavenumbers includes the whole factor 1 / W

Quadrature quadrature_of(const SphericalGrid& grid) {
  return grid.grid == LatitudeGrid::Equiangular ? clenshaw_curtis(grid.latitudes) : legendre_gauss(grid.latitudes);
}

// x (M, R, in) times table (M, in, out). Matmuls of both passes are not autocast, and the table is not saved a second time.
struct LegendreMatmul : torch::autograd::Function<LegendreMatmul> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& table) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const AutocastGuard as_they_are(x.device().type(), std::nullopt);
    context->saved_data["table"] = table;
    return at::bmm(x, table);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    once_differentiable("the transform to spherical harmonics");
    const at::Tensor table = context->saved_data["table"].toTensor();
    const AutocastGuard as_they_are(table.device().type(), std::nullopt);
    return {at::bmm(gradients.at(0), table.transpose(1, 2)), at::Tensor()};
  }
};

// (R, K, M) complex -> (M, 2 R, K) real, and back.
at::Tensor rows_by_order(const at::Tensor& values_RKM) {
  const at::Tensor parts_RKM2 = at::view_as_real(values_RKM);
  return parts_RKM2.permute({2, 0, 3, 1}).reshape({values_RKM.size(2), 2 * values_RKM.size(0), values_RKM.size(1)});
}

at::Tensor complex_of_rows(const at::Tensor& rows) {
  const at::Tensor parts_MR2K = rows.unflatten(1, {rows.size(1) / 2, 2});
  return at::view_as_complex(parts_MR2K.permute({1, 3, 0, 2}).contiguous());
}

std::vector<int64_t> leading_sizes(const at::Tensor& x, int64_t rows, int64_t columns) {
  std::vector<int64_t> sizes = x.sizes().slice(0, static_cast<size_t>(x.dim()) - 2).vec();
  sizes.insert(sizes.end(), {rows, columns});
  return sizes;
}

at::ScalarType transform_type(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

at::Tensor functions_of(const SphericalGrid& grid) {
  const std::vector<double> functions = legendre_table(grid.orders, grid.degrees, quadrature_of(grid).cosines);
  return at::tensor(functions, at::kDouble).view({grid.orders, grid.degrees, grid.latitudes});
}

at::Tensor weights_of(const SphericalGrid& grid) {
  return at::tensor(quadrature_of(grid).weights, at::kDouble).mul(2 * std::numbers::pi);
}

}  // namespace

SphericalTransform::SphericalTransform(const SphericalGrid& grid)
    : grid_(grid), functions_(functions_of(grid)), weights_(weights_of(grid)) {
  WELKIN_CHECK(grid.orders <= grid.longitudes / 2 + 1, "a circle of latitude has points for every order");
}

at::Tensor SphericalTransform::analyse(const at::Tensor& x) const {
  const at::Tensor field_RHW = x.to(transform_type(x)).reshape({-1, grid_.latitudes, grid_.longitudes});
  const at::Tensor waves_RHM = at::fft_rfft(field_RHW, std::nullopt, -1, kForward).narrow(2, 0, grid_.orders);
  const at::Tensor weighted = rows_by_order(waves_RHM).mul(weights_.as(x.device(), transform_type(x)));
  const at::Tensor coefficients = LegendreMatmul::apply(weighted, functions_.as(x.device(), transform_type(x)).transpose(1, 2));
  return complex_of_rows(coefficients).view(leading_sizes(x, grid_.degrees, grid_.orders));
}

at::Tensor SphericalTransform::synthesise(const at::Tensor& coefficients) const {
  const at::Tensor functions = functions_.as(coefficients.device(), at::toRealValueType(coefficients.scalar_type()));
  const at::Tensor rows = rows_by_order(coefficients.reshape({-1, grid_.degrees, grid_.orders}));
  const at::Tensor waves_RHM = complex_of_rows(LegendreMatmul::apply(rows, functions));
  const at::Tensor field_RHW = at::fft_irfft(waves_RHM, grid_.longitudes, -1, kForward);
  return field_RHW.view(leading_sizes(coefficients, grid_.latitudes, grid_.longitudes));
}

}  // namespace welkin::ops
