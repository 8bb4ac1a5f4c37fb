// SPDX-License-Identifier: Apache-2.0
// A program run as a child by posix_spawn (nothing survives a fork once torch is loaded), with pipes to its standard input and
// from its standard output. Its standard error is discarded: a library may print as it dies. Torch-free.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <span>
#include <string>

#include "core/file_descriptor.h"

namespace welkin::data {

class ChildProcess {
 public:
  ChildProcess(const std::filesystem::path& program, std::span<const std::string> arguments);
  ~ChildProcess();  // ends it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool runs() const { return pid_ > 0; }  // false: it could not be started
  int input() const { return input_.get(); }
  int output() const { return output_.get(); }

  // Call it after the output has ended. Returns the failure ("ended with signal 11 (Segmentation fault)"). Empty for exit code
  // 0, and where others ended it (a scheduler, the kernel for want of memory).
  std::string wait();

 private:
  void reap() const;

  pid_t pid_ = 0;
  FileDescriptor input_, output_;
};

}  // namespace welkin::data
