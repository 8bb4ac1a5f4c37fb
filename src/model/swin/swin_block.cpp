// SPDX-License-Identifier: Apache-2.0
#include "model/swin/swin_block.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "model/base/init.h"
#include "ops/base/autocast.h"
#include "ops/gemm/mixed_matmul.h"

namespace welkin::model {
namespace {

constexpr double kBiasDeviation = 0.02;
constexpr std::array<int64_t, 2> kRowsAndColumns{1, 2};  // of (B, H, W, ...)

// For tokens i and j of a window: the index of their rows and of the distance of their columns.
at::Tensor pair_index(const SwinOptions& options) {
  const int64_t tokens = options.window_tokens(), columns = options.window_columns;
  at::Tensor index = at::empty({tokens * tokens}, at::kLong);
  int64_t* out = index.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < tokens; ++i) {
    for (int64_t j = 0; j < tokens; ++j) {
      const int64_t pair_of_rows = (i / columns) * options.window_rows + j / columns;
      out[i * tokens + j] = pair_of_rows * (2 * columns - 1) + (i % columns) - (j % columns) + columns - 1;
    }
  }
  return index;
}

// After a shift the last band has the southernmost rows followed by the northernmost, which must not attend to each other.
at::Tensor pole_mask(const SwinOptions& options, int64_t shift_rows) {
  const int64_t tokens = options.window_tokens();
  at::Tensor mask = at::zeros({options.window_bands(), 1, 1, tokens, tokens});
  if (shift_rows == 0) return mask;
  float* last = mask.mutable_data_ptr<float>() + (options.window_bands() - 1) * tokens * tokens;
  const int64_t southern = (options.window_rows - shift_rows) * options.window_columns;  // tokens
  for (int64_t i = 0; i < tokens; ++i) {
    for (int64_t j = 0; j < tokens; ++j) {
      if ((i < southern) != (j < southern)) last[i * tokens + j] = -std::numeric_limits<float>::infinity();
    }
  }
  return mask;
}

// Uses float32 for types that the processor multiplies slowly.
at::Tensor window_matmul(const at::Tensor& a, const at::Tensor& b) {
  const auto low = ops::operand_type(a, ops::OperatorClass::Matmul);
  if (!ops::upcasts_matmul(a.device(), low)) return at::matmul(a, b);
  const ops::AutocastGuard in_float32(a.device().type(), std::nullopt);
  return at::matmul(a.to(at::kFloat), b.to(at::kFloat));
}

}  // namespace

WindowAttention::WindowAttention(std::string path, const SwinOptions& options, bool is_shifted)
    : Layer(std::move(path)),
      options_(options),
      head_dim_(options.embed_dim / options.num_heads),
      shift_rows_(is_shifted && options.window_bands() > 1 ? options.window_rows / 2 : 0),
      shift_columns_(is_shifted && options.columns() > options.window_columns ? options.window_columns / 2 : 0),
      whole_(this->path()),
      in_(path_of("in")),
      bias_(path_of("earth_position_bias_table")),
      windows_(path_of("windows")),
      core_(path_of("core")),
      index_(pair_index(options)),
      mask_(pole_mask(options, shift_rows_)) {
  earth_position_bias_table = register_parameter("earth_position_bias_table",
                                                 at::empty({options.bias_rows(), options.window_bands(), options.num_heads}));
  qkv_ = add<Linear>("qkv", options.embed_dim, 3 * options.embed_dim);
  proj_ = add<Linear>("proj", options.embed_dim, options.embed_dim);
  proj_drop_ = add<Dropout>("proj_drop", options.dropout);
}

at::Tensor WindowAttention::forward(const at::Tensor& x_BND, const ForwardContext& context) const {
  return whole_({x_BND}, [this, context](Tensors in) { return Tensors{attend(in.at(0), context)}; }).at(0);
}

// q, k and v are computed for tokens in their order, which may be sharded. Windows need all tokens, of some heads.
at::Tensor WindowAttention::attend(const at::Tensor& x_BND, const ForwardContext& context) const {
  const at::Tensor entered = in_({x_BND}, [](Tensors in) { return in; }).at(0);
  const at::Tensor qkv = qkv_->forward(entered);
  const at::Tensor table = bias_({earth_position_bias_table}, [](Tensors in) { return in; }).at(0);
  const auto in_windows = [this](const Tensors& in) {
    const auto body = [this](const Tensors& windows) { return weigh(windows); };
    return Tensors{tokens_of(core_({windows_of(in.at(0)), bias_of(in.at(1))}, body).at(0))};
  };
  const at::Tensor mixed_BND = windows_({qkv, table}, in_windows).at(0);
  return proj_drop_->forward(proj_->forward(mixed_BND), context);
}

Tensors WindowAttention::weigh(const Tensors& qkv_and_bias) const {
  const at::Tensor& qkv = qkv_and_bias.at(0);
  const at::Tensor q = qkv.select(0, 0).mul(1.0 / std::sqrt(static_cast<double>(head_dim_)));
  const at::Tensor logits = window_matmul(q, qkv.select(0, 1).transpose(-2, -1));
  const at::Tensor weights = at::softmax(logits.add(qkv_and_bias.at(1)), -1);
  return {window_matmul(weights, qkv.select(0, 2))};
}

at::Tensor WindowAttention::windows_of(const at::Tensor& qkv_BNF) const {
  const int64_t heads = qkv_BNF.size(2) / (3 * head_dim_);
  const at::Tensor grid_BHWF = qkv_BNF.unflatten(1, {options_.rows(), options_.columns()});
  const at::Tensor shifted = at::roll(grid_BHWF, {-shift_rows_, -shift_columns_}, kRowsAndColumns);
  const at::Tensor cut = shifted.unflatten(3, {3, heads, head_dim_})
                             .unflatten(2, {-1, options_.window_columns})
                             .unflatten(1, {-1, options_.window_rows});  // (B, P, rows, Q, columns, 3, A, h)
  return cut.permute({5, 0, 1, 3, 6, 2, 4, 7}).flatten(5, 6);
}

at::Tensor WindowAttention::tokens_of(const at::Tensor& mixed_BPQATE) const {
  const at::Tensor cut = mixed_BPQATE.unflatten(4, {options_.window_rows, options_.window_columns});  // (B, P, Q, A, r, c, h)
  const at::Tensor grid_BHWD = cut.permute({0, 1, 4, 2, 5, 3, 6}).flatten(5, 6).flatten(3, 4).flatten(1, 2);
  return at::roll(grid_BHWD, {shift_rows_, shift_columns_}, kRowsAndColumns).flatten(1, 2);
}

at::Tensor WindowAttention::bias_of(const at::Tensor& table) const {
  const int64_t tokens = options_.window_tokens();
  const at::Tensor pairs = table.index_select(0, index_.as(table.device(), at::kLong));  // (T T, P, A)
  const at::Tensor bias = pairs.permute({1, 2, 0}).unflatten(2, {tokens, tokens}).unsqueeze(1);
  return shift_rows_ == 0 ? bias : bias.add(mask_.as(table.device(), table.scalar_type()));
}

void WindowAttention::initialise(uint64_t seed) {
  fill_normal(earth_position_bias_table, seed, path_of("earth_position_bias_table"), kBiasDeviation);
  Layer::initialise(seed);
}

std::vector<Site*> WindowAttention::sites() {
  return {&whole_, &in_, qkv_->sites().at(0), &bias_, &windows_, &core_, proj_->sites().at(0)};
}

SwinBlock::SwinBlock(std::string path, const SwinOptions& options, int64_t index) : Layer(std::move(path)), whole_(this->path()) {
  const double last = static_cast<double>(std::max<int64_t>(1, options.depth - 1));
  const double drop_path = options.dropout * static_cast<double>(index) / last;
  norm1_ = add<LayerNorm>("norm1", options.embed_dim);
  attn_ = add<WindowAttention>("attn", options, /*is_shifted=*/index % 2 == 1);
  norm2_ = add<LayerNorm>("norm2", options.embed_dim);
  mlp_ = add<Mlp>("mlp", MlpOptions{.width = options.embed_dim, .hidden = options.mlp_width, .dropout = options.dropout});
  attn_path_ = add<DropPath>("attn_path", drop_path);
  mlp_path_ = add<DropPath>("mlp_path", drop_path);
}

at::Tensor SwinBlock::forward(const at::Tensor& x_BND, const ForwardContext& context) const {
  return whole_({x_BND}, [this, context](Tensors in) { return Tensors{transform(in.at(0), context)}; }).at(0);
}

at::Tensor SwinBlock::transform(const at::Tensor& x_BND, const ForwardContext& context) const {
  const at::Tensor attended = attn_->forward(norm1_->forward(x_BND), context);
  const ops::ResidualNorm middle_BND = norm2_->of_sum(x_BND, attn_path_->forward(attended, context));
  return middle_BND.sum.add(mlp_path_->forward(mlp_->forward(middle_BND.normed, context), context));
}

}  // namespace welkin::model
