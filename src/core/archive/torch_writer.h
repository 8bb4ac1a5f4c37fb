// SPDX-License-Identifier: Apache-2.0
// Writes a file that torch.load(FILE, weights_only=True) takes: values in the order in which they are added, as a pickle of
// protocol 2, and one record for each tensor. The file appears whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/archive/zip_writer.h"
#include "core/dtype.h"

namespace welkin::archive {

// A writer holds one value. Inside a dict, keys and values alternate:
//   writer.begin_dict(); writer.text("epoch"); writer.integer(3); writer.end_dict(); writer.write("x.pt");
class TorchWriter {
 public:
  TorchWriter();

  void none() { pickle_ += 'N'; }
  void boolean(bool value) { pickle_ += value ? '\x88' : '\x89'; }
  void integer(int64_t value);
  void number(double value);
  void text(std::string_view value);
  void begin_dict() { pickle_ += "}("; }
  void end_dict() { pickle_ += 'u'; }
  void begin_list() { pickle_ += "]("; }
  void end_list() { pickle_ += 'e'; }
  void begin_tuple() { pickle_ += '('; }
  void end_tuple() { pickle_ += 't'; }
  // `produce` is called once, during write(), and emits the values in row-major order.
  void tensor(Dtype dtype, const std::vector<int64_t>& shape, ZipWriter::Producer produce);

  // A text beside the value, "archive/extra/NAME" in the file, as torch.jit.save's _extra_files; torch.load ignores it.
  void extra(std::string name, std::string text) { extras_.emplace_back(std::move(name), std::move(text)); }

  // Throws DataError with the system's reason. A file that is there is replaced.
  void write(const std::filesystem::path& path) const;
  // The value alone, as pickle.load takes it; a value without tensors.
  void write_pickle(const std::filesystem::path& path) const;

 private:
  struct Storage {
    uint64_t bytes;
    ZipWriter::Producer produce;
  };
  void global(std::string_view module, std::string_view name);

  std::string pickle_;
  std::vector<Storage> storages_;
  std::vector<std::pair<std::string, std::string>> extras_;
};

}  // namespace welkin::archive
