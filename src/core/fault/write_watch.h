// SPDX-License-Identifier: Apache-2.0
// Who watches files being written: file.h asks before each stage, and the watch may let the stage fail as a disk would, or end
// the process there. For fault injection and tests; without a watch a stage costs one load.
#pragma once

#include <filesystem>
#include <functional>

namespace welkin {

// What is about to be done to a file, or to the folder that holds it.
enum class WriteStage { Create, Write, Sync, Rename };

// 0: go on; else the errno with which the stage fails. Called on the writing threads, several at a time.
using WriteWatch = std::function<int(WriteStage, const std::filesystem::path&)>;

// The watch of the process while it lives. At most one lives at a time, and no file is being written when it begins or ends.
class WriteWatchScope {
 public:
  explicit WriteWatchScope(WriteWatch watch);
  ~WriteWatchScope();
  WriteWatchScope(const WriteWatchScope&) = delete;
  WriteWatchScope& operator=(const WriteWatchScope&) = delete;

 private:
  WriteWatch watch_;
};

// What the watch says; 0 where there is none.
int watched(WriteStage stage, const std::filesystem::path& path);

}  // namespace welkin
