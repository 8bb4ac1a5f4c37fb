// SPDX-License-Identifier: Apache-2.0
// A specification of samples as JSON and back: what a model package says of the data that its model was trained on.
#pragma once

#include <string>
#include <string_view>

#include "data/sample/dataset.h"

namespace welkin::train::interchange {

// Every field of it, under its name.
std::string sample_spec_json(const data::SampleSpec& spec);

// DataError naming `source` for a text that sample_spec_json() does not give: lengths that do not fit the channels, for one.
data::SampleSpec sample_spec_from_json(std::string_view text, const std::string& source);

// In what data differ from those that a model was trained on, so that its channels would mean something else: "input channels: a
// b and b a"; empty where they do not. What one of them does not say is no difference.
std::string difference_of_data(const data::SampleSpec& trained, const data::SampleSpec& spec);

}  // namespace welkin::train::interchange
