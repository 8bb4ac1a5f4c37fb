// SPDX-License-Identifier: Apache-2.0
// The specification in a model package: what is written is read, and what does not fit is refused by name.
#include "train/interchange/sample_spec_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"

namespace welkin::train::interchange {
namespace {

data::SampleSpec small_spec() {
  data::SampleSpec spec;
  spec.input = {.channels = {"t2m", "solar"}, .units = {"K", ""}, .shape = {2, 3, 4}};
  spec.target = {.channels = {"t2m"}, .units = {"K"}, .shape = {1, 3, 4}, .scaling = {{"log10", 0.1, 1.0 / 3}}};
  spec.geometry = data::Geometry::Sphere;
  spec.latitude = {60, 0, -60};
  spec.longitude = {0, 90, 180, 270};
  spec.input_mean = {280.1, 0}, spec.input_std = {12.3, 1};
  spec.target_mean = {280.1}, spec.target_std = {12.3};
  spec.input_log = {1}, spec.input_log_eps = {1e-5};
  spec.earlier_target = {0}, spec.known_input = {1};
  spec.first_cell = {4, 5};
  spec.has_holes = true;
  return spec;
}

// Where `from` stands in the text of the small specification, `to` does.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = sample_spec_json(small_spec());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in " << text;
  return text.replace(at, from.size(), to);
}

TEST(SampleSpecJson, WhatIsWrittenIsRead) {
  const std::string text = sample_spec_json(small_spec());
  const data::SampleSpec read = sample_spec_from_json(text, {.path = "package.json"});
  EXPECT_EQ(sample_spec_json(read), text);
  EXPECT_EQ(read.input.channels, small_spec().input.channels);
  EXPECT_EQ(read.target.scaling.at(0).scale, 1.0 / 3);
  EXPECT_EQ(read.geometry, data::Geometry::Sphere);
  EXPECT_EQ(read.input_std, small_spec().input_std);
  EXPECT_TRUE(read.has_holes);
}

TEST(SampleSpecJson, WhatIsNestedWithoutEndIsRefused) {
  const std::string nested = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_THROW(sample_spec_from_json("{\"a\":" + nested + ",\"input\":1}", {.path = "package.json"}), DataError);
}

struct DamagedSpec {
  const char *from, *to, *reason;
};

class DamagedSpecs : public ::testing::TestWithParam<DamagedSpec> {};

TEST_P(DamagedSpecs, AreRefusedByName) {
  try {
    sample_spec_from_json(changed(GetParam().from, GetParam().to), {.path = "package.json"});
    FAIL() << GetParam().to;
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("[package] the specification of the data is damaged: path=package.json, reason="));
    EXPECT_THAT(error.what(), ::testing::HasSubstr(GetParam().reason));
  }
}

INSTANTIATE_TEST_SUITE_P(
    SampleSpecJson, DamagedSpecs,
    ::testing::Values(DamagedSpec{R"("shape":[2,3,4])", R"("shape":[2,-3,4])", "input: shape"},
                      DamagedSpec{R"("shape":[2,3,4])", R"("shape":[2,1e123,4])", "an integer was expected"},
                      DamagedSpec{R"("shape":[2,3,4])", R"("shape":[3,3,4])", "input: channels"},
                      DamagedSpec{R"("shape":[1,3,4])", R"("shape":[1,1000000000000,1000000])", "target: shape"},
                      DamagedSpec{R"("input_mean":[280.1,0.0])", R"("input_mean":[280.1])", "input: means"},
                      DamagedSpec{R"("input_std":[12.3,)", R"("input_std":[0,)", "input: a deviation that is not positive"},
                      DamagedSpec{R"("input_log":[1])", R"("input_log":[2])", "input: log"},
                      DamagedSpec{R"("geometry":1)", R"("geometry":9)", "geometry"},
                      DamagedSpec{R"("earlier_target":[0])", R"("earlier_target":[2])", "earlier_target"},
                      DamagedSpec{R"("latitude":[)", R"("latitude":[1,)", "latitude"},
                      DamagedSpec{R"("has_holes":true)", R"("has_holes":7)", "type"},
                      DamagedSpec{R"("known_input")", R"("unknown")", "known_input"}, DamagedSpec{"{", "[", "parse"}));

}  // namespace
}  // namespace welkin::train::interchange
