// SPDX-License-Identifier: Apache-2.0
#include "config/resolve/tutorial.h"

#include <algorithm>

#include "config/draft/origin.h"
#include "config/flags/flag.h"
#include "config/schema/key.h"
#include "core/text.h"

namespace welkin::config {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The names that only files of these tutorials hold, if they concern the model or its data (lr or optimizer
// may be added to any file).
std::vector<std::string> names_only_in(const std::vector<std::string>& names, TutorialBits bits) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    const Key* key = find_key(name);
    if (key != nullptr && key->scope != Scope::Any && key->tutorials != 0 && (key->tutorials & ~bits) == 0) found.push_back(name);
  }
  return found;
}

std::string first_names(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  return join(
      std::vector<std::string>(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size()))), ", ");
}

Inference infer_unet(const std::vector<std::string>& names, const std::vector<std::string>& own) {
  const bool sc21 = contains(names, "enable_amp");
  const bool sc22 = contains(names, "amp_mode");
  if (sc21 == sc22) {
    return {
        Tutorial::None,
        sc21 ? "both enable_amp (SC21) and amp_mode (SC22) are there" : "neither enable_amp (SC21) nor amp_mode (SC22) is there",
        {Tutorial::Sc21, Tutorial::Sc22}};
  }
  return {sc21 ? Tutorial::Sc21 : Tutorial::Sc22, cat("keys ", first_names(own), " and ", sc21 ? "enable_amp" : "amp_mode"), {}};
}

Inference infer_vit(const std::vector<std::string>& names, const std::vector<std::string>& own) {
  const bool fused = contains(names, "enable_fused");
  const bool loader = contains(names, "data_loader_config");
  if (fused != loader) {
    return {Tutorial::None,
            cat("SC23 has both enable_fused and data_loader_config, DL4SCI25 neither, this file only ",
                fused ? "enable_fused" : "data_loader_config"),
            {Tutorial::Sc23, Tutorial::Dl4sci25}};
  }
  if (fused) return {Tutorial::Sc23, cat("keys ", first_names(own), ", enable_fused and data_loader_config"), {}};
  return {Tutorial::Dl4sci25, cat("keys ", first_names(own), " without enable_fused and data_loader_config"), {}};
}

std::string flags_text(const std::vector<Tutorial>& tutorials) {
  std::vector<std::string> flags;
  for (const Tutorial tutorial : tutorials) flags.push_back(cat("--tutorial ", tutorial_name(tutorial)));
  return join(flags, ", ");
}

bool same_model(Tutorial a, Tutorial b) { return is_unet_tutorial(a) == is_unet_tutorial(b); }

}  // namespace

bool is_unet_tutorial(Tutorial tutorial) { return tutorial == Tutorial::Sc21 || tutorial == Tutorial::Sc22; }
bool is_vit_tutorial(Tutorial tutorial) { return tutorial == Tutorial::Sc23 || tutorial == Tutorial::Dl4sci25; }

std::string_view tutorial_title(Tutorial tutorial) {
  switch (tutorial) {
    case Tutorial::Sc21:
      return "SC21";
    case Tutorial::Sc22:
      return "SC22";
    case Tutorial::Sc23:
      return "SC23";
    case Tutorial::Dl4sci25:
      return "DL4SCI25";
    case Tutorial::None:
      break;
  }
  return "none";
}

Inference infer_tutorial(const std::vector<std::string>& names) {
  const auto unet = names_only_in(names, kUnetTutorials);
  const auto vit = names_only_in(names, kVitTutorials);
  if (!unet.empty() && vit.empty()) return infer_unet(names, unet);
  if (!vit.empty() && unet.empty()) return infer_vit(names, vit);
  const std::vector<Tutorial> all = {Tutorial::Sc21, Tutorial::Sc22, Tutorial::Sc23, Tutorial::Dl4sci25};
  if (unet.empty()) return {Tutorial::None, "no key of it is particular to one of them", all};
  return {Tutorial::None,
          cat("it has keys of the U-Net's files (", first_names(unet), ") and of the ViT's (", first_names(vit), ")"), all};
}

void resolve_tutorial(Draft& draft, Tutorial from_flag) {
  const Inference inferred = infer_tutorial(draft.names);
  Tutorial& tutorial = draft.config.tutorial;
  if (from_flag != Tutorial::None) {
    tutorial = from_flag;
    draft.given["tutorial"] = {.origin = {.layer = Layer::Flag, .text = "--tutorial"}, .rank = 0};
  }
  if (draft.has("tutorial")) {
    if (tutorial == Tutorial::None || inferred.tutorial == Tutorial::None || same_model(tutorial, inferred.tutorial)) return;
    draft.problems.add(draft.place("tutorial"),
                       cat("the file is one of ", tutorial_title(inferred.tutorial), " (", inferred.reason, "), not of ",
                           tutorial_title(tutorial)),
                       cat("Use --tutorial ", tutorial_name(inferred.tutorial), " or another file"));
    return;
  }
  if (draft.has("model.model")) return;
  if (inferred.tutorial == Tutorial::None) {
    draft.problems.add("", cat("the configuration does not tell which tutorial it belongs to: ", inferred.reason),
                       cat("Choose one of ", flags_text(inferred.candidates), ", or name a model by the key `model`"));
    return;
  }
  tutorial = inferred.tutorial;
  draft.derived("tutorial", inferred.reason);
}

}  // namespace welkin::config
