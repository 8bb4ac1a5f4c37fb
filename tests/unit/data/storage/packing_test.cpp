// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "core/error.h"
#include "data/storage/stored_array.h"

namespace welkin::data {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

ArrayFacts facts_of(const Attributes& attributes, Dtype dtype) {
  ArrayFacts facts{
      .source = "a.h5, dataset=x", .name = "x", .shape = {2, 3}, .chunk = {}, .codecs = {}, .axes = {}, .packing = {}};
  facts.dtype = dtype;
  add_packing(attributes, facts);
  return facts;
}

AttributeValue numbers(std::vector<double> values) { return values; }

// One stored value, unpacked.
double unpacked(const ArrayFacts& facts, double stored) {
  std::vector<double> values(6, stored);
  const int64_t stride[] = {3, 1};
  unpack(*facts.packing, whole_region({2, 3}), values.data(), stride);
  return values[4];
}

TEST(PackingTest, NothingIsSetWhereValuesAreReadAsTheyAre) {
  EXPECT_FALSE(facts_of({}, Dtype::F32).packing);
  EXPECT_EQ(facts_of({}, Dtype::F32).missing, Missing::None);
  const ArrayFacts nan = facts_of({{"_FillValue", numbers({NAN})}}, Dtype::F32);
  EXPECT_FALSE(nan.packing) << "files of xarray are copied from the mapping";
  EXPECT_EQ(nan.missing, Missing::Declared);
}

TEST(PackingTest, FillValuesAreComparedAsTheArrayHoldsThem) {
  const ArrayFacts facts = facts_of({{"_FillValue", numbers({1e20})}, {"missing_value", numbers({-999, -9999.9})}}, Dtype::F32);
  EXPECT_FALSE(facts.packing->is_scaled());
  EXPECT_TRUE(std::isnan(unpacked(facts, static_cast<double>(1e20f))));
  EXPECT_TRUE(std::isnan(unpacked(facts, -999)));
  EXPECT_TRUE(std::isnan(unpacked(facts, static_cast<double>(-9999.9f))));
  EXPECT_EQ(unpacked(facts, 3.5), 3.5);
  EXPECT_TRUE(std::signbit(unpacked(facts, -0.0)));
  EXPECT_EQ(unpacked(facts_of({{"_FillValue", numbers({1e300})}}, Dtype::F32), 1e20), 1e20) << "no float32 is that large";
}

TEST(PackingTest, WhatNetcdfLeavesUnwrittenIsMissingAndNotDeclared) {
  const auto undeclared = [](const Attributes& attributes) {
    ArrayFacts facts{.source = "a.nc", .name = "x", .shape = {2, 3}, .packing = {}};
    add_packing(attributes, facts, netcdf_fill(Dtype::F32));
    return facts;
  };
  EXPECT_EQ(undeclared({}).missing, Missing::Undeclared);
  EXPECT_TRUE(std::isnan(unpacked(undeclared({}), *netcdf_fill(Dtype::F32))));
  EXPECT_EQ(undeclared({}).packing->only_missing(), static_cast<float>(*netcdf_fill(Dtype::F32)));
  const ArrayFacts declared = undeclared({{"_FillValue", numbers({1e20})}});
  EXPECT_EQ(declared.missing, Missing::Declared);
  EXPECT_EQ(declared.packing->only_missing(), 1e20f) << "no float32 is 1e20 in double";
  EXPECT_EQ(undeclared({{"missing_value", numbers({-1})}}).packing->only_missing(), std::nullopt) << "one of two";
  EXPECT_EQ(undeclared({{"scale_factor", numbers({2})}}).packing->only_missing(), std::nullopt);
  EXPECT_EQ(undeclared({{"valid_min", numbers({0})}}).packing->only_missing(), std::nullopt);
}

TEST(PackingTest, ValidRangesAreInStoredUnits) {
  const Attributes packed{{"scale_factor", numbers({0.5})}, {"add_offset", numbers({10})}};
  Attributes attributes = packed;
  attributes["valid_range"] = numbers({-100, 100});
  EXPECT_EQ(unpacked(facts_of(attributes, Dtype::I16), 100), 60);
  EXPECT_TRUE(std::isnan(unpacked(facts_of(attributes, Dtype::I16), 101)));
  attributes = packed;
  attributes["valid_min"] = numbers({10.5});  // no integer: of the unpacked values
  EXPECT_EQ(unpacked(facts_of(attributes, Dtype::I16), 1), 10.5);
  EXPECT_TRUE(std::isnan(unpacked(facts_of(attributes, Dtype::I16), 0)));
  EXPECT_TRUE(std::isnan(unpacked(facts_of({{"valid_max", numbers({350})}}, Dtype::F32), 350.5)));
  EXPECT_THAT(
      [] {
        facts_of({{"valid_range", numbers({2, 1})}}, Dtype::F32);
      },
      ThrowsMessage<DataError>(HasSubstr("reason=the lowest valid value is above the highest. Repair valid_range")));
  EXPECT_THAT(
      [] {
        facts_of({{"valid_range", numbers({2})}}, Dtype::F32);
      },
      ThrowsMessage<DataError>(HasSubstr("reason=valid_range has 1 numbers")));
}

TEST(PackingTest, UnsignedIntegersStoredAsSigned) {
  const ArrayFacts facts = facts_of({{"_Unsigned", std::vector<std::string>{"true"}},
                                     {"_FillValue", numbers({-1})},
                                     {"scale_factor", numbers({0.1})},
                                     {"valid_range", numbers({0, -2})}},
                                    Dtype::I8);
  EXPECT_DOUBLE_EQ(unpacked(facts, -2), 25.4);
  EXPECT_DOUBLE_EQ(unpacked(facts, 100), 10);
  EXPECT_TRUE(std::isnan(unpacked(facts, -1)));
}

TEST(PackingTest, UnsignedIsAWordWithoutCaseAndHasAReverse) {
  const auto text = [](const char* value) { return AttributeValue(std::vector<std::string>{value}); };
  EXPECT_EQ(unpacked(facts_of({{"_Unsigned", text("TRUE")}}, Dtype::I8), -41), 215);
  const ArrayFacts bytes = facts_of({{"_Unsigned", text("false")}, {"_FillValue", numbers({-1})}}, Dtype::U8);
  EXPECT_EQ(unpacked(bytes, 156), -100);
  EXPECT_EQ(unpacked(bytes, 127), 127);
  EXPECT_TRUE(std::isnan(unpacked(bytes, 255)));
  EXPECT_FALSE(facts_of({{"_Unsigned", text("false")}}, Dtype::I8).packing);
  EXPECT_FALSE(facts_of({{"_Unsigned", text("true")}}, Dtype::U8).packing);
}

TEST(PackingTest, TooManyMissingValuesAreRefused) {
  EXPECT_THAT(
      [] {
        facts_of({{"missing_value", numbers(std::vector<double>(65, 1.0))}}, Dtype::F32);
      },
      ThrowsMessage<DataError>(HasSubstr("reason=more than 64 missing values")));
}

}  // namespace
}  // namespace welkin::data
