// SPDX-License-Identifier: Apache-2.0
// The folder of a reference case: its meta.json and the files beside it. Cases come from anywhere, so every byte is hostile:
// JSON is bounded in size and depth, names of other files must be plain names, and the case's promises are checked against its
// files. Remembers which tensors were asked for, so that a tensor that nobody compared is reported.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "verify/cases/comparison.h"
#include "verify/cases/stored_tensors.h"

namespace welkin::verify {

// Parts of a case that a run leaves out on purpose: names (of tensors, or stems of files) that begin so, and the reason.
struct LeftOut {
  std::string prefix;
  std::string reason;
};

class CaseFolder {
 public:
  // DataError when there is no readable meta.json with a `kind`.
  explicit CaseFolder(const std::filesystem::path& folder);
  ~CaseFolder();
  CaseFolder(CaseFolder&&) noexcept;

  const std::filesystem::path& path() const { return path_; }
  std::string name() const { return path_.filename().string(); }
  const nlohmann::json& meta() const { return *meta_; }
  std::string kind() const;

  // A file or folder inside the case, or beside it. DataError when `name` is more than a plain name.
  std::filesystem::path member(const std::string& name) const;
  CaseFolder sibling(const std::string& name) const;
  nlohmann::json json(const std::string& file) const;

  // stem.safetensors: null when there is none. Opened once; lives as long as the folder.
  const StoredTensors* tensors(const std::string& stem) const;
  const StoredTensors& need_tensors(const std::string& stem) const;  // DataError instead of null

  // Failed rows for tensors that meta.json's `files` names but the files lack, or hold with another shape or type.
  std::vector<ComparisonRow> broken_promises() const;
  // After a run: a failed row for each tensor that nobody asked for, and for each file that nobody opened; one skipped row for
  // each `left_out` that matches something.
  std::vector<ComparisonRow> leftovers(const std::vector<LeftOut>& left_out) const;

 private:
  std::filesystem::path path_;
  std::unique_ptr<nlohmann::json> meta_;
  mutable std::map<std::string, std::unique_ptr<StoredTensors>> opened_;
};

// The number that follows `word` in a sentence of meta.json ("rel 1e-6"), or `otherwise`.
double number_after(const std::string& text, const std::string& word, double otherwise);

// The folders that the arguments name: a case, its meta.json, or a folder of cases. Other files are left out and listed in
// `ignored`. DataError when a path is absent or holds no case.
std::vector<std::filesystem::path> find_cases(const std::vector<std::string>& arguments, std::vector<std::string>& ignored);

}  // namespace welkin::verify
