// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/check_helper.h"

#include "data/ingest/source/component.h"

namespace welkin::apps {

std::filesystem::path check_helper() {
  constexpr const char* kName = "welkin-check-files";
  const auto folder = data::ingest::library_folder();
  std::error_code ignored;
  const auto beside = folder / kName;
  return std::filesystem::exists(beside, ignored) ? beside : folder.parent_path() / "libexec" / kName;
}

}  // namespace welkin::apps
