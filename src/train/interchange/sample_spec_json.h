// SPDX-License-Identifier: Apache-2.0
// A specification of samples as JSON and back: what a model package says of the data that its model was trained on.
#pragma once

#include <string>
#include <string_view>

#include "data/sample/dataset.h"

namespace welkin::train::interchange {

// Every field of it, under its name.
std::string sample_spec_json(const data::SampleSpec& spec);

struct SpecSource {
  std::string path;
  std::string component = "package";
  std::string remedy = "Fetch the package again";
};
// DataError naming the source for a text that sample_spec_json() does not give: lengths that do not fit the channels, for one.
data::SampleSpec sample_spec_from_json(std::string_view text, const SpecSource& source);

}  // namespace welkin::train::interchange
