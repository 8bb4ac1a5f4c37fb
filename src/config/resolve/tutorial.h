// SPDX-License-Identifier: Apache-2.0
// The tutorial that a file belongs to, by its keys (spec: SC21 has enable_amp, SC22 amp_mode; SC23 has enable_fused and
// data_loader_config, DL4SCI25 neither), and the values that follow from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/draft/draft.h"
#include "config/schema/run_config.h"

namespace welkin::config {

struct Inference {
  Tutorial tutorial = Tutorial::None;  // None: the keys do not tell
  std::string reason;                  // "keys lambda_rho, box_size and amp_mode" or why they do not tell
  std::vector<Tutorial> candidates;    // when they do not
};

// `names`: flat names as the preset writes them.
Inference infer_tutorial(const std::vector<std::string>& names);

bool is_unet_tutorial(Tutorial tutorial);
bool is_vit_tutorial(Tutorial tutorial);

// Sets config.tutorial from the command line, the file's key `tutorial`, or the keys. A problem when the keys do not tell and no
// key `model` is given, or when the file's keys are those of the other model.
void resolve_tutorial(Draft& draft, Tutorial from_flag);

// "SC22", "DL4SCI25" for people.
std::string_view tutorial_title(Tutorial tutorial);

}  // namespace welkin::config
