// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/staging.h"

#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace welkin::data::ingest {

StagingFolder::StagingFolder(std::filesystem::path target) : target_(std::filesystem::absolute(target).lexically_normal()) {
  if (!target_.has_filename()) target_ = target_.parent_path();  // "out/" names the same folder as "out"
  if (std::filesystem::exists(std::filesystem::symlink_status(target_))) {
    throw DataError("ingest", cat("the output exists already: out=", target_.string()), "Remove it or choose another --out");
  }
  path_ = target_;
  path_ += cat(".partial-", getpid());
  make_folders(path_);
}

StagingFolder::~StagingFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

void StagingFolder::publish() {
  publish_folder(path_, target_);
  path_.clear();
}

}  // namespace welkin::data::ingest
