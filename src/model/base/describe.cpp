// SPDX-License-Identifier: Apache-2.0
// Recurses over named children and folds runs of equal ones.
#include "model/base/describe.h"

#include <sstream>
#include <vector>

#include "core/text.h"

namespace welkin::model {
namespace {

struct ChildText {
  std::string first, last;  // names of the run
  std::string text;
  int64_t count = 1;
};

std::string own_text(const torch::nn::Module& module) {
  std::ostringstream out;
  module.pretty_print(out);
  return out.str();
}

std::vector<ChildText> fold_equal(const torch::nn::Module& module, bool is_list) {
  std::vector<ChildText> folded;
  for (const auto& child : module.named_children()) {
    std::string text = describe(*child.value());
    if (is_list && !folded.empty() && folded.back().text == text) {
      folded.back().last = child.key();
      ++folded.back().count;
    } else {
      folded.push_back({child.key(), child.key(), std::move(text)});
    }
  }
  return folded;
}

std::string indented(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "  ";
  }
  return out;
}

}  // namespace

std::string describe(const torch::nn::Module& module) {
  const std::string name = own_text(module);
  const std::vector<ChildText> children = fold_equal(module, name == "ModuleList");
  if (children.empty()) return name.find('(') == std::string::npos ? name + "()" : name;
  std::string out = name + "(\n";
  for (const ChildText& child : children) {
    const std::string label =
        child.count == 1 ? cat("(", child.first, "): ") : cat("(", child.first, "-", child.last, "): ", child.count, " x ");
    out += "  " + label + indented(child.text) + "\n";
  }
  return out + ")";
}

}  // namespace welkin::model
