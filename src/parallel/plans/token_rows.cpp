// SPDX-License-Identifier: Apache-2.0
#include "parallel/plans/token_rows.h"

#include "core/error.h"
#include "core/text.h"
#include "parallel/plans/plan_context.h"
#include "parallel/tokens/token_blocks.h"

namespace welkin::parallel {

TokenAxes token_axes(const TokenField& field, const Mesh& mesh, const LayoutOptions& options) {
  TokenAxes axes;
  const bool cuts_columns = mesh.size(Axis::W) > 1;
  AxisSet cut;
  for (const Axis axis : {Axis::Cp, Axis::H, Axis::W}) {
    if (mesh.size(axis) > 1) cut = cut | axis;
  }
  if (cut != AxisSet()) axes.context = cut;
  const int64_t ranks = axes.ranks(mesh), tp = mesh.size(Axis::Tp);
  int64_t fewest = field.num_tokens / ranks;
  if (cuts_columns) {
    WELKIN_CHECK(field.columns > 0, "a plan that cuts fields along their width knows the columns of patches");
    const int64_t rows = field.num_tokens / field.columns;
    check_blocks(rows, field.columns, mesh);
    fewest = (rows / mesh.size(Axis::Cp | Axis::H)) * (field.columns / mesh.size(Axis::W));
  }
  if (cuts_columns && field.dropout > 0.0 && options.sequence_parallel) {
    throw ConfigError("parallel",
                      cat("sequence_parallel with dropout needs fields that are cut along their height alone: dropout=",
                          field.dropout, ", ranks along the width of spatial=", mesh.size(Axis::W)),
                      cat("Cut the height, --spatial 1x", mesh.size(kSpatial), "x1, or leave sequence_parallel or dropout out"));
  }
  if (fewest < (options.sequence_parallel ? tp : 1)) {
    throw ConfigError("parallel",
                      cat("fewer tokens than ranks to share them: tokens=", field.num_tokens, ", tp=", tp, ", ",
                          axes_text(axes.context), "=", ranks, ", sequence_parallel=", options.sequence_parallel),
                      cat("Take fewer ranks along ", axes_text(axes.context), ", or smaller patches"));
  }
  axes.is_input_split = (options.sharded_io || axes.context != Axis::Cp) && ranks > 1;
  if (!axes.is_input_split) axes.inner.push_back(Axis::Cp);
  if (options.sequence_parallel) axes.inner.push_back(Axis::Tp);
  return axes;
}

void add_split_input(Plan& plan, const TokenAxes& axes, bool with_positions) {
  if (!axes.is_input_split) return;
  WELKIN_CHECK(plan.tokens_per_row > 0, "the plan of an input that is split knows the rows of patches");
  plan.input_axes = {axes.context};
  plan.rows.push_back({"patch_embed", OwnFromRead{}});
  if (with_positions) plan.rows.push_back({"positions", OwnFromAll{}});
  plan.rows.push_back({"head", ReadFromOwn{}});
}

void check_channels_divide(const std::string& key, int64_t extent, const Mesh& mesh, int64_t context_ranks) {
  const int64_t tp = mesh.size(Axis::Tp);
  if (extent % (tp * context_ranks) == 0) return;
  const std::string context = context_ranks > 1 ? cat(", ranks that share a sample=", context_ranks) : std::string();
  throw ConfigError("parallel", cat("the channels cannot be split: ", key, "=", extent, ", tp=", tp, context),
                    cat(context_ranks > 1 ? "Products of these that work: " : "Sizes of tp that work: ", divisors_text(extent)));
}

}  // namespace welkin::parallel
