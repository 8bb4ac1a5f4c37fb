// SPDX-License-Identifier: Apache-2.0
// Times that two files of one folder hold: training and statistics would count them twice. Torch-free.
#pragma once

#include <string>
#include <vector>

#include "data/datasets/field_file.h"

namespace welkin::data {

// A warning that names the first such time and both files; empty where there is none. Members of an ensemble (attribute `member`)
// share their times.
std::string doubled_times_text(const std::vector<const FieldFacts*>& files);

}  // namespace welkin::data
