// SPDX-License-Identifier: Apache-2.0
#include "config/validate/validate_mesh.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "config/schema/key.h"
#include "core/text.h"

namespace welkin::config {
namespace {

// dp, tp, cp, pp, h, w, d in any order, each once; a name that is left out belongs to an axis of size 1.
void validate_order(Draft& draft) {
  constexpr std::string_view kPath = "parallel.parallel_order";
  const auto axes = split(draft.config.parallel.parallel_order, '-');
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool known = axes[i] == "dp" || axes[i] == "tp" || axes[i] == "cp" || axes[i] == "pp" || axes[i] == "h" ||
                       axes[i] == "w" || axes[i] == "d";
    if (known && std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) ==
                     axes.begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    return draft.problems.add(
        draft.place(kPath),
        cat("parallel_order names an axis ", known ? "twice" : "that does not exist", ": ", draft.show(kPath)),
        "Join dp, tp, cp and pp by '-', the fastest first: tp-cp-dp");
  }
  const auto left_out = [&](std::string_view axis) { return std::find(axes.begin(), axes.end(), axis) == axes.end(); };
  const ParallelConfig& parallel = draft.config.parallel;
  if ((left_out("tp") && parallel.tensor_parallel > 1) || (left_out("cp") && parallel.context_parallel > 1)) {
    draft.problems.add(draft.place(kPath), cat("parallel_order leaves out an axis that is larger than 1: ", draft.show(kPath)),
                       "Name it: tp-cp-dp");
  }
}

// The exchange of the backward pass sums gradients over the blocks of a sample. These settings leave it out.
void validate_spatial(Draft& draft) {
  constexpr std::string_view kPath = "parallel.spatial";
  const ParallelConfig& parallel = draft.config.parallel;
  if (parallel.spatial.size() == 1 || !draft.is_sound({kPath})) return;
  for (const auto& [path, is_on] : {std::pair<std::string_view, bool>{"parallel.rank_invariant", parallel.rank_invariant},
                                    std::pair<std::string_view, bool>{"parallel.noddp", parallel.noddp}}) {
    if (!is_on) continue;
    draft.problems.add(draft.place(kPath), cat("spatial does not go with this: ", draft.show(kPath), ", ", draft.show(path)),
                       "Leave one of them out");
  }
}

void validate_sizes(Draft& draft, int64_t world_size) {
  const ParallelConfig& parallel = draft.config.parallel;
  const int64_t model_size = parallel.model_size();
  if (world_size % model_size == 0 || !is_mesh_sound(draft)) return;
  std::string axes = "tensor_parallel times context_parallel";
  std::string values = cat(draft.show("parallel.tensor_parallel"), ", ", draft.show("parallel.context_parallel"));
  const char* place = parallel.tensor_parallel > 1 ? "parallel.tensor_parallel" : "parallel.context_parallel";
  if (parallel.spatial.size() > 1) {
    place = "parallel.spatial";
    axes += " times the ranks of spatial";
    values += cat(", ", draft.show(place));
  }
  if (parallel.pipeline_parallel > 1) {
    place = "parallel.pipeline_parallel";
    axes = cat("pipeline_parallel times ", axes);
    values = cat(draft.show(place), ", ", values);
  }
  draft.problems.add(draft.place(place),
                     cat(axes, " does not divide the number of processes: ", values, ", processes=", world_size),
                     cat("Start a multiple of ", model_size, " processes, for instance with welkin launch -n ", model_size));
}

}  // namespace

bool is_mesh_sound(const Draft& draft) {
  return draft.is_sound({"parallel.tensor_parallel", "parallel.row_parallel_size", "parallel.context_parallel",
                         "parallel.pipeline_parallel", "parallel.spatial"});
}

void validate_mesh(Draft& draft, int64_t world_size) {
  validate_sizes(draft, world_size);
  validate_spatial(draft);
  validate_order(draft);
}

}  // namespace welkin::config
