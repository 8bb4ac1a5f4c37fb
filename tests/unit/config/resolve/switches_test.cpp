// SPDX-License-Identifier: Apache-2.0
#include "config/resolve/switches.h"

#include <sstream>

#include "config/print/print.h"
#include "config/schema/key.h"
#include "config/schema/value.h"
#include "harness.h"

namespace welkin::config {
namespace {

using test::resolve_shipped;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Switches, DocumentHoldsTheTableOfTheCode) {
  EXPECT_THAT(file_text(test::source_folder() / "docs/reference/switches.md"), HasSubstr("\n" + switch_table_markdown() + "\n"));
}

TEST(Switches, KeysDocumentHoldsTheSchema) {
  EXPECT_THAT(file_text(test::source_folder() / "docs/reference/keys.md"), HasSubstr("\n" + keys_markdown()));
}

TEST(Switches, EveryValueHasARow) {
  const auto has_row = [](std::string_view name, std::string_view value) {
    for (const auto& row : switch_meanings()) {
      if (row.name == name && row.value == value) return true;
    }
    return false;
  };
  for (const char* name :
       {"enable_jit", "enable_apex", "enable_fused", "enable_amp", "noddp", "enable_benchy", "enable_manual_profiling"}) {
    EXPECT_TRUE(has_row(name, "on") && has_row(name, "off")) << name;
  }
  for (const char* name : {"amp_mode", "data_loader_config", "resident"}) {
    for (const auto value : split(find_key(name)->choices, '|')) EXPECT_TRUE(has_row(name, value)) << name << " " << value;
  }
}

TEST(Switches, ARunSaysWhatItsSwitchesMean) {
  const auto notes = switch_notes(resolve_shipped("sc23/ViT.yaml", {"--config=short_opt"}).config, DeviceKind::Cpu);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("enable_jit on: "), HasSubstr("enable_fused on: "),
                                 HasSubstr("amp_mode fp16: fp16 autocast with a loss scaler; few CPUs have matmuls of fp16"),
                                 HasSubstr("data_loader_config dali: read like pytorch; there is no GPU part on a CPU")));
  for (const auto& note : switch_notes(resolve_shipped("sc23/ViT.yaml", {"--config=short_opt"}).config, DeviceKind::Cuda)) {
    EXPECT_THAT(note, ::testing::Not(HasSubstr("on a CPU")));
  }
  EXPECT_THAT(switch_notes(resolve_shipped("ViT.yaml").config, DeviceKind::Cpu),
              ElementsAre(HasSubstr("data_loader_config pytorch: ")));
  EXPECT_THAT(switch_notes(resolve_shipped("ViT.yaml", {"--resident=device"}).config, DeviceKind::Cpu),
              Contains("resident device: there is no GPU, and its memory is the host's: the same as host"));
}

}  // namespace
}  // namespace welkin::config
