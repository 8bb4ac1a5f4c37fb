// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/check_helper.h"

#include <filesystem>
#include <iostream>
#include <mutex>

#include "apps/cli/rank_run.h"
#include "core/error.h"
#include "core/text.h"
#include "data/ingest/source/component.h"

namespace welkin::apps {
namespace {

constexpr const char* kName = "welkin-check-files";

// Contradicting launcher variables are reported by the verb that needs a rank.
bool is_first_of_node() {
  try {
    return this_rank_info().local_rank == 0;
  } catch (const ConfigError&) {
    return true;
  }
}

void warn_of_absence(const std::filesystem::path& folder) {
  static std::once_flag once;
  std::call_once(once, [&] {
    if (!is_first_of_node()) return;
    std::cerr
        << cat("warning: a damaged file may end this process, since the program that opens files first is not there: program=",
               kName, ", searched=", folder.string(), " ", (folder.parent_path() / "libexec").string(), ". Install it there.\n")
        << std::flush;
  });
}

}  // namespace

data::CheckHelper check_helper() {
  const auto folder = data::ingest::library_folder();
  std::error_code ignored;
  const auto beside = folder / kName;
  data::CheckHelper helper{.program =
                               std::filesystem::exists(beside, ignored) ? beside : folder.parent_path() / "libexec" / kName};
  helper.on_absent = [folder] { warn_of_absence(folder); };
  return helper;
}

}  // namespace welkin::apps
