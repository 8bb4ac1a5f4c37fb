// SPDX-License-Identifier: Apache-2.0
// A watch over files being written. file.h asks it before each stage; it may let the stage fail as a disk would, or end the
// process there. For fault injection and tests; without a watch a stage costs one load and one sum. Stages are counted, so that a
// slow disk can be told from one that hangs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

namespace welkin {

// The stage that comes next for a file, or for the folder that holds it.
enum class WriteStage { Create, Write, Sync, Rename };

// Returns 0 to go on, else the errno with which the stage fails. Called on the writing threads, several at a time.
using WriteWatch = std::function<int(WriteStage, const std::filesystem::path&)>;

// Sets the process's watch while it lives. At most one lives at a time, and no file is being written when it begins or ends.
class WriteWatchScope {
 public:
  explicit WriteWatchScope(WriteWatch watch);
  ~WriteWatchScope();
  WriteWatchScope(const WriteWatchScope&) = delete;
  WriteWatchScope& operator=(const WriteWatchScope&) = delete;

 private:
  WriteWatch watch_;
};

// The watch's answer; 0 where there is no watch.
int watched(WriteStage stage, const std::filesystem::path& path);

// The number of stages, and of parts of long ones, that this process has begun for any file. It grows while a disk takes data.
uint64_t write_stages();
// A part of a long stage has ended.
void note_write_progress();

}  // namespace welkin
