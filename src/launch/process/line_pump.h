// SPDX-License-Identifier: Apache-2.0
// Copies the output of a process from a pipe, whole lines at a time, each marked with its rank.
#pragma once

#include <string>

#include "core/file_descriptor.h"

namespace welkin::launch {

class LinePump {
 public:
  // `target` is 1 or 2; an empty mark copies lines as they are.
  LinePump(FileDescriptor source, int target, std::string mark)
      : source_(std::move(source)), target_(target), mark_(std::move(mark)) {}

  int descriptor() const { return source_.get(); }
  bool open() const { return static_cast<bool>(source_); }
  // Reads the bytes that are there; closes at the end of the stream, after writing an unfinished last line.
  void pump();

 private:
  void write_lines(bool at_end);

  FileDescriptor source_;
  int target_;
  std::string mark_;
  std::string held_;  // the beginning of a line
};

}  // namespace welkin::launch
