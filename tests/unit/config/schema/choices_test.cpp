// SPDX-License-Identifier: Apache-2.0
// Enums as values of keys: their names, and that the key table has the same.
#include "config/schema/choices.h"

#include "config/schema/key.h"
#include "config/schema/value.h"
#include "harness.h"

namespace welkin::config {
namespace {

using ::testing::HasSubstr;

TEST(Choices, AValueHasItsNameAndIsFoundByIt) {
  EXPECT_EQ(name_of(AmpMode::None), "none");
  EXPECT_EQ(name_of(AmpMode::Bf16), "bf16");
  EXPECT_EQ(choice_named<AmpMode>("fp16"), AmpMode::Fp16);
  for (const char* wrong : {"", "fp", "fp166", "none|fp16", "|"}) EXPECT_FALSE(choice_named<AmpMode>(wrong)) << wrong;
}

// Every value of every key of an enum is read from its name and written as it.
TEST(Choices, TheKeyTableReadsAndWritesEveryName) {
  int64_t enums = 0;
  for (const Key& key : schema()) {
    const std::string_view names = enum_names(key.field);
    enums += names.empty() ? 0 : 1;
    EXPECT_TRUE(names.empty() || names == key.choices) << key.path;
    for (const std::string_view name : split(names, '|')) {
      if (name.find(':') != std::string_view::npos) continue;  // pattern:REGEX stands for many: checkpointing_test.cpp
      RunConfig config;
      const YamlDocument document = string_value(std::string(name), "test");
      EXPECT_FALSE(unknown_choice(key, document.top())) << key.path << " " << name;
      EXPECT_FALSE(assign(config, key, document, document.root)) << key.path << " " << name;
      EXPECT_EQ(python_text(config, key), name) << key.path;
    }
  }
  EXPECT_GE(enums, 3);
}

TEST(Choices, AWrongNameThatALaterOneReplacesIsNoError) {
  const std::string file = "base:\n  model: vit\n  amp_mode: bf61\n  global_batch_size: 4\n  num_iters: 1\n";
  EXPECT_EQ(test::resolve_text(file, {"--amp_mode=bf16"}).config.precision.amp_mode, AmpMode::Bf16);
  EXPECT_EQ(test::resolve_text(file, {"--amp_mode=null"}).config.precision.amp_mode, AmpMode::None);
  const std::string message = "run.yaml:3: amp_mode is none of none, fp16, bf16: amp_mode=bf61. Nearest: bf16";
  EXPECT_THAT(test::resolve_error(file), HasSubstr(message));
  EXPECT_THAT(test::config_error([&] { saved_values(file, "run.yaml"); }), HasSubstr(message));
  EXPECT_THAT(test::resolve_error("base:\n  model: vit\n  amp_mode: [bf16]\n"), HasSubstr("amp_mode wants a string, is a list"));
}

}  // namespace
}  // namespace welkin::config
