// SPDX-License-Identifier: Apache-2.0
// A console that writes into a file, so that a test can read what a user would see.
#pragma once

#include <fcntl.h>

#include <string>

#include "core/file.h"
#include "core/file_descriptor.h"
#include "observe/log/console.h"
#include "temporary_folder.h"

namespace welkin::observe {

class CapturedConsole {
 public:
  explicit CapturedConsole(bool terminal, int columns = 80)
      : file_(open_file(folder_ / "console", O_WRONLY | O_CREAT | O_APPEND)),
        console_({.fd = file_.get(), .terminal = terminal, .columns = columns}) {}

  Console& console() { return console_; }
  std::string text() const { return read_file(folder_ / "console", 1 << 24); }

 private:
  TemporaryFolder folder_;
  FileDescriptor file_;
  Console console_;
};

}  // namespace welkin::observe
