// SPDX-License-Identifier: Apache-2.0
// A specification of samples as JSON and back: the description of a model's training data in its package.
#pragma once

#include <string>
#include <string_view>

#include "data/sample/dataset.h"

namespace welkin::train::interchange {

// Every field of the specification, under its name.
std::string sample_spec_json(const data::SampleSpec& spec);

struct SpecSource {
  std::string path;
  std::string component = "package";
  std::string remedy = "Fetch the package again";
};
// DataError naming the source for a text that sample_spec_json() would not write, such as lengths that do not fit the channels.
data::SampleSpec sample_spec_from_json(std::string_view text, const SpecSource& source);

}  // namespace welkin::train::interchange
