// SPDX-License-Identifier: Apache-2.0
#include "ops/sample/sample_crop.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include "core/error.h"

namespace welkin::ops {
namespace {

template <typename From, typename To>
void cut_on_cpu(const CropSource& source, const CropTarget& target, const CropTables& tables, const From* from,
                int64_t source_size, To* to) {
  const auto* places = reinterpret_cast<const CropPlace*>(tables.place.const_data_ptr<int64_t>());
  const auto* channels = tables.channel.const_data_ptr<int64_t>();
  const auto* ops = reinterpret_cast<const CropOp*>(tables.op.const_data_ptr<double>());
  const int64_t C = target.size[1], D = target.size[2], H = target.size[3], W = target.size[4];
  at::parallel_for(0, target.size[0] * C * D, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t i = item % D, c = item / D % C, b = item / D / C;
      const int64_t channel = channels[b * C + c];
      const CropAxis along_rows = crop_axis(source, places[b], 1), along_columns = crop_axis(source, places[b], 2);
      const int64_t plane = crop_begin(source, places[b], channel) + crop_axis(source, places[b], 0).element(i);
      for (int64_t j = 0; j < H; ++j) {
        const int64_t line = plane + along_rows.element(j);
        To* row = to + b * target.stride[0] + c * target.stride[1] + i * target.stride[2] + j * target.stride[3];
        for (int64_t k = 0; k < W; ++k) {
          const int64_t element = line + along_columns.element(k);
          WELKIN_CHECK(element >= 0 && element < source_size, "a cut outside of what is held");
          row[k * target.stride[4]] = static_cast<To>(crop_value(static_cast<float>(from[element]), (channel & 1) != 0, ops[c]));
        }
      }
    }
  });
}

void crop_samples_cpu(const at::Tensor& out, const at::Tensor& source, const at::Tensor& place, const at::Tensor& channel,
                      const at::Tensor& op, at::IntArrayRef stride, at::IntArrayRef edge) {
  CropSource layout;
  std::copy(stride.begin(), stride.end(), layout.stride);
  std::copy(edge.begin(), edge.end(), layout.edge);
  const CropTables tables{place, channel, op};
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, source.scalar_type(), "cut_samples_from", [&] {
    using From = scalar_t;
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, out.scalar_type(), "cut_samples_to", [&] {
      cut_on_cpu(layout, crop_target(out), tables, source.const_data_ptr<From>(), source.numel(),
                 out.mutable_data_ptr<scalar_t>());
    });
  });
}

void crop_samples_by_aten(const at::Tensor& out, const at::Tensor& source, const at::Tensor& place, const at::Tensor& channel,
                          const at::Tensor& op, at::IntArrayRef stride, at::IntArrayRef edge) {
  CropSource layout;
  std::copy(stride.begin(), stride.end(), layout.stride);
  std::copy(edge.begin(), edge.end(), layout.edge);
  crop_samples_reference(out, source, layout, {place, channel, op});
}

bool is_table(const at::Tensor& table, at::ScalarType type, at::IntArrayRef sizes) {
  return table.scalar_type() == type && table.sizes() == sizes && table.is_contiguous();
}

}  // namespace

void crop_samples_reference(const at::Tensor& out, const at::Tensor& source, const CropSource& layout, const CropTables& tables) {
  const auto numbers = [&](const int64_t* values) {
    return at::from_blob(const_cast<int64_t*>(values), {3}, at::TensorOptions(at::kLong)).clone().to(out.device());  // read only
  };
  const at::Tensor strides = numbers(layout.stride + 1), edges = numbers(layout.edge);
  const at::Tensor first = tables.place.narrow(1, 1, 3), axis = tables.place.narrow(1, 4, 3), step = tables.place.narrow(1, 7, 3);
  const int64_t samples = out.size(0), channels = out.size(1);
  at::Tensor element = tables.place.narrow(1, 0, 1).view({samples, 1, 1, 1, 1}) +
                       (tables.channel.__rshift__(1) * layout.stride[0]).view({samples, channels, 1, 1, 1});
  for (int64_t a = 0; a < 3; ++a) {
    const at::Tensor along = axis.narrow(1, a, 1);
    const at::Tensor cells = at::arange(out.size(2 + a), along.options());
    const at::Tensor at_cell = (first.gather(1, along) + step.narrow(1, a, 1) * cells).remainder(edges.take(along));
    std::vector<int64_t> shape{samples, 1, 1, 1, 1};
    shape[static_cast<size_t>(2 + a)] = out.size(2 + a);
    element = element + (at_cell * strides.take(along)).view(shape);
  }
  const auto column = [&](int64_t i) { return tables.op.select(1, i).view({1, channels, 1, 1, 1}); };
  at::Tensor values = source.take(element).to(at::kFloat);
  const at::Tensor negated = tables.channel.__and__(1).view({samples, channels, 1, 1, 1}).to(at::kBool);
  values = at::where(negated, -values, values);
  values = at::where(values < column(0).to(at::kFloat), column(0).to(at::kFloat), values);
  values = at::where(values > column(1).to(at::kFloat), column(1).to(at::kFloat), values);
  values = at::where(column(2) != 0, values.log1p(), values);
  values = (values.to(at::kDouble) - column(3)).to(at::kFloat);
  out.copy_((values.to(at::kDouble) / column(4)).to(at::kFloat));
}

CropTarget crop_target(const at::Tensor& out) {
  CropTarget target;
  std::copy(out.sizes().begin(), out.sizes().end(), target.size);
  std::copy(out.strides().begin(), out.strides().end(), target.stride);
  return target;
}

void crop_samples(const at::Tensor& out, const at::Tensor& source, const CropSource& layout, const CropTables& tables) {
  WELKIN_CHECK(out.dim() == 5 && source.dim() == 1 && source.is_contiguous(), "crop_samples: (B, C, D, H, W) from one dimension");
  const int64_t samples = out.size(0), channels = out.size(1);
  WELKIN_CHECK(is_table(tables.place, at::kLong, {samples, kCropPlaceWords}) &&
                   is_table(tables.channel, at::kLong, {samples, channels}) &&
                   is_table(tables.op, at::kDouble, {channels, kCropOpWords}),
               "crop_samples: tables of the batch's size");
  if (out.numel() == 0) return;
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("welkin::crop_samples", "")
                             .typed<void(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                         const at::Tensor&, at::IntArrayRef, at::IntArrayRef)>();
  op.call(out, source, tables.place, tables.channel, tables.op, layout.stride, layout.edge);
}

}  // namespace welkin::ops

// NOLINTBEGIN: torch's registration macros
TORCH_LIBRARY_FRAGMENT(welkin, library) {
  library.def(
      "crop_samples(Tensor(a!) out, Tensor source, Tensor place, Tensor channel, Tensor op, int[] stride, int[] edge) -> ()");
}
TORCH_LIBRARY_IMPL(welkin, CompositeExplicitAutograd, library) {
  library.impl("crop_samples", welkin::ops::crop_samples_by_aten);
}
TORCH_LIBRARY_IMPL(welkin, CPU, library) { library.impl("crop_samples", welkin::ops::crop_samples_cpu); }
// NOLINTEND
