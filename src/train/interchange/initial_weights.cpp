// SPDX-License-Identifier: Apache-2.0
#include "train/interchange/initial_weights.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "core/glob.h"
#include "core/text.h"
#include "train/interchange/import_state.h"

namespace welkin::train::interchange {
namespace {

constexpr size_t kNamesShown = 20;

size_t wildcards_in(const std::string& pattern) {
  return static_cast<size_t>(std::ranges::count_if(pattern, [](char c) { return c == '*' || c == '?'; }));
}

WeightRename parse_rename(const std::string& text) {
  for (const std::string_view arrow : {"->", "="}) {
    const size_t at = text.find(arrow);
    if (at == std::string::npos || at == 0) continue;
    WeightRename rename{.from = text.substr(0, at), .to = text.substr(at + arrow.size())};
    if (wildcards_in(rename.to) <= wildcards_in(rename.from)) return rename;
    throw ConfigError("train", cat("the new name has more stars than the old one: init_map=", text),
                      "Each * on the right stands for one on the left: encoder.*=blocks.*");
  }
  throw ConfigError("train", cat("this maps no names: init_map=", text),
                    "Write FROM=TO,FROM=TO, for instance --init_map 'encoder.*=blocks.*,head.*='");
}

std::string renamed(const std::string& name, const std::vector<WeightRename>& renames) {
  for (const WeightRename& rename : renames) {
    if (const auto parts = glob_match(rename.from, name)) return rename.to.empty() ? "" : glob_filled(rename.to, *parts);
  }
  return name;
}

// Renames tensors to the model's names; drops those without one.
void rename_weights(State& state, const std::vector<WeightRename>& renames) {
  std::map<std::string, std::string> before;
  for (StateTensor& tensor : state.tensors) {
    if (tensor.group != "model") continue;
    const std::string name = renamed(tensor.name, renames);
    if (const auto [other, is_new] = before.emplace(name, tensor.name); !is_new && !name.empty()) {
      throw CheckpointError("checkpoint",
                            cat("two tensors get the same name: name=", name, ", tensors=", other->second, " and ", tensor.name),
                            "Change --init_map");
    }
    tensor.name = name;
  }
  std::erase_if(state.tensors, [](const StateTensor& tensor) { return tensor.group == "model" && tensor.name.empty(); });
}

struct Fit {
  std::vector<std::string> taken, initial, misshapen, unused;
};

std::string shape_of_text(const std::vector<int64_t>& shape) { return cat("(", join(shape, ","), ")"); }

Fit fit_of(const State& state, const CheckpointGroup& model) {
  Fit fit;
  std::set<std::string, std::less<>> wanted;
  for (const CheckpointTensor& tensor : model.tensors) {
    wanted.insert(tensor.name);
    const StateTensor* found = state.find(tensor.name);
    if (found == nullptr || found->group != "model") {
      fit.initial.push_back(tensor.name);
    } else if (found->shape != whole_shape_of(tensor)) {
      fit.misshapen.push_back(cat(tensor.name, " ", shape_of_text(found->shape), " for ", shape_of_text(whole_shape_of(tensor))));
    } else {
      fit.taken.push_back(tensor.name);
    }
  }
  for (const StateTensor& tensor : state.tensors) {
    if (tensor.group == "model" && !wanted.contains(tensor.name)) fit.unused.push_back(tensor.name);
  }
  return fit;
}

void add_names(std::vector<std::string>& lines, const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  const size_t shown = std::min(names.size(), kNamesShown);
  const std::vector<std::string> first(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown));
  lines.push_back(
      cat("  ", what, ": ", join(first, ", "), names.size() > shown ? cat(" and ", names.size() - shown, " more") : ""));
}

std::vector<std::string> lines_about(const State& state, const Fit& fit) {
  const size_t own = fit.taken.size() + fit.initial.size() + fit.misshapen.size();
  std::vector<std::string> lines{cat("Weights of ", fit.taken.size(), " of ", own, " tensors are those of ", state.path.string(),
                                     " (", state.format, "), the others keep their initial values")};
  add_names(lines, "not in the file", fit.initial);
  add_names(lines, "of another shape", fit.misshapen);
  add_names(lines, "unused", fit.unused);
  return lines;
}

}  // namespace

std::vector<WeightRename> parse_renames(const std::string& text) {
  std::vector<WeightRename> renames;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    renames.push_back(parse_rename(text.substr(at, end - at)));
    at = end + 1;
  }
  return renames;
}

std::vector<std::string> take_weights(State state, const InitialWeights& how, const CheckpointGroup& model) {
  rename_weights(state, how.renames);
  if (!how.partial) {
    load_weights(state, model);
    return {cat("Weights are those of ", state.path.string(), " (", state.format, ")")};
  }
  const Fit fit = fit_of(state, model);
  if (fit.taken.empty()) {
    throw CheckpointError("checkpoint", cat("none of the weights fits this model: path=", state.path.string()),
                          "welkin ckpt inspect lists them; map names with --init_map 'FROM=TO'");
  }
  for (const CheckpointTensor& tensor : model.tensors) {
    if (std::ranges::find(fit.taken, tensor.name) != fit.taken.end()) load_weight(*state.find(tensor.name), tensor);
  }
  return lines_about(state, fit);
}

}  // namespace welkin::train::interchange
