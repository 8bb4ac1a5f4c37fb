// SPDX-License-Identifier: Apache-2.0
// Bounded reading, and a record of what was read.
#include "verify/cases/case_folder.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace welkin::verify {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr uint64_t kJsonLimitBytes = uint64_t{1} << 26;
constexpr int kJsonLimitDepth = 32;
constexpr size_t kMostFiles = 4096;

Json read_bounded_json(const fs::path& path) {
  const std::string text = read_file(path, kJsonLimitBytes);
  const auto depth_limit = [&](int depth, Json::parse_event_t, Json&) {
    if (depth <= kJsonLimitDepth) return true;
    throw DataError("reference", cat("JSON is nested too deeply: file=", path.string(), ", limit=", kJsonLimitDepth),
                    "Give a folder of the reference cases");
  };
  try {
    return Json::parse(text, depth_limit);
  } catch (const Json::exception& error) {
    throw DataError("reference", cat("not JSON: file=", path.string(), ", error=", error.what()),
                    "The file is damaged: fetch or write the case again");
  }
}

std::string promised_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::F64:
      return "float64";
    case Dtype::F32:
      return "float32";
    case Dtype::F16:
      return "float16";
    case Dtype::BF16:
      return "bfloat16";
    case Dtype::I64:
      return "int64";
    case Dtype::I32:
      return "int32";
    default:
      return std::string(dtype_name(dtype));
  }
}

ComparisonRow broken(const std::string& stem, const std::string& name, std::string reason) {
  return failed(name, cat(reason, ", file=", stem, ".safetensors"), "case");
}

void check_promise(const std::string& stem, const StoredTensors& stored, const Json& promise, std::vector<ComparisonRow>& rows) {
  if (promise.contains("count") && promise.at("count").is_number_integer()) {
    const auto count = promise.at("count").get<int64_t>();
    const auto held = static_cast<int64_t>(stored.names().size());
    if (count != held) rows.push_back(broken(stem, stem, cat("tensors are missing: stated=", count, ", held=", held)));
    return;
  }
  for (const auto& [name, entry] : promise.items()) {
    if (!stored.contains(name)) {
      rows.push_back(broken(stem, name, "the tensor is missing"));
      continue;
    }
    const TensorInfo& info = stored.info(name);
    if (entry.contains("shape") && entry.at("shape").get<std::vector<int64_t>>() != info.shape) {
      rows.push_back(
          broken(stem, name, cat("wrong shape: stated=", entry.at("shape").dump(), ", held=[", join(info.shape, ","), "]")));
    }
    if (entry.contains("dtype") && entry.at("dtype").get<std::string>() != promised_type(info.dtype)) {
      rows.push_back(
          broken(stem, name, cat("wrong type: stated=", entry.at("dtype").dump(), ", held=", promised_type(info.dtype))));
    }
  }
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() < 256 && name != "." && name != ".." &&
         name.find_first_of(std::string("/\\\0", 3)) == name.npos;
}

// A path in a loop of links counts as absent.
bool is_there(const fs::path& path) {
  std::error_code failure;
  return fs::exists(path, failure);
}

const LeftOut* find_left_out(const std::vector<LeftOut>& rules, const std::string& name) {
  for (const LeftOut& rule : rules) {
    if (name.starts_with(rule.prefix)) return &rule;
  }
  return nullptr;
}

}  // namespace

CaseFolder::CaseFolder(const fs::path& folder) {
  std::error_code failure;
  path_ = fs::canonical(folder, failure);
  if (failure || !fs::is_directory(path_, failure)) {
    throw DataError("reference", cat("there is no such folder: case=", folder.string()), "Give folders of reference cases");
  }
  meta_ = std::make_unique<Json>(read_bounded_json(path_ / "meta.json"));
  kind();
}

CaseFolder::~CaseFolder() = default;
CaseFolder::CaseFolder(CaseFolder&&) noexcept = default;

std::string CaseFolder::kind() const {
  const auto found = meta_->is_object() ? meta_->find("kind") : meta_->end();
  if (found == meta_->end() || !found->is_string()) {
    throw DataError("reference", cat("meta.json states no kind: folder=", path_.string()),
                    "Give a folder of the reference cases");
  }
  return found->get<std::string>();
}

fs::path CaseFolder::member(const std::string& name) const {
  if (is_plain_name(name)) return path_ / name;
  throw DataError("reference", cat("a case may name files beside its meta.json only: folder=", path_.string(), ", name=", name),
                  "Do not run cases of unknown origin; correct meta.json");
}

CaseFolder CaseFolder::sibling(const std::string& name) const {
  member(name);
  return CaseFolder(path_.parent_path() / name);
}

Json CaseFolder::json(const std::string& file) const { return read_bounded_json(member(file)); }

const StoredTensors* CaseFolder::tensors(const std::string& stem) const {
  const auto [place, is_new] = opened_.try_emplace(stem);
  const fs::path path = path_ / (stem + ".safetensors");
  if (is_new && is_there(path)) place->second = std::make_unique<StoredTensors>(path);
  return place->second.get();
}

const StoredTensors& CaseFolder::need_tensors(const std::string& stem) const {
  if (const StoredTensors* stored = tensors(stem)) return *stored;
  throw DataError("reference", cat("a file of the case is missing: file=", (path_ / (stem + ".safetensors")).string()),
                  "Fetch or write the case again");
}

std::vector<ComparisonRow> CaseFolder::broken_promises() const {
  std::vector<ComparisonRow> rows;
  if (!meta_->contains("files") || !meta_->at("files").is_object()) return rows;
  for (const auto& [stem, promise] : meta_->at("files").items()) {
    if (!promise.is_object()) continue;  // a sentence about files of other formats
    member(stem);
    if (const StoredTensors* stored = tensors(stem)) {
      check_promise(stem, *stored, promise, rows);
    } else {
      rows.push_back(broken(stem, stem, "the file is missing"));
    }
  }
  return rows;
}

std::vector<ComparisonRow> CaseFolder::leftovers(const std::vector<LeftOut>& left_out) const {
  std::vector<ComparisonRow> rows;
  std::set<std::string> stems;
  for (const auto& entry : fs::directory_iterator(path_)) {
    if (entry.path().extension() == ".safetensors") stems.insert(entry.path().stem().string());
    if (stems.size() > kMostFiles) break;
  }
  std::map<std::string, int64_t> skips;
  for (const std::string& stem : stems) {
    const StoredTensors& stored = need_tensors(stem);
    const std::vector<std::string> unused = stored.unused();
    if (const LeftOut* rule = find_left_out(left_out, stem); rule != nullptr && unused.size() == stored.names().size()) {
      ++skips[rule->prefix];
      continue;
    }
    for (const std::string& name : unused) {
      if (const LeftOut* rule = find_left_out(left_out, name)) {
        ++skips[rule->prefix];
      } else {
        rows.push_back(broken(stem, name, "nothing here computes this tensor, so nobody compared it"));
      }
    }
  }
  for (const LeftOut& rule : left_out) {
    if (skips.contains(rule.prefix)) rows.push_back(skipped(cat(rule.prefix, "* (", skips[rule.prefix], ")"), rule.reason));
  }
  return rows;
}

double number_after(const std::string& text, const std::string& word, double otherwise) {
  const size_t found = text.find(word);
  if (found == std::string::npos) return otherwise;
  const char* begin = text.c_str() + found + word.size();
  char* end = nullptr;
  const double value = std::strtod(begin, &end);
  return end == begin ? otherwise : value;
}

std::vector<fs::path> find_cases(const std::vector<std::string>& arguments, std::vector<std::string>& ignored) {
  std::vector<fs::path> cases;
  std::error_code unused;
  for (const std::string& argument : arguments) {
    fs::path path = fs::path(argument).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();  // a slash at the end
    if (path.filename() == "meta.json") path = path.parent_path().empty() ? "." : path.parent_path();
    if (!is_there(path))
      throw DataError("verify", cat("there is no such case: case=", argument), "Give folders of reference cases");
    if (!fs::is_directory(path, unused)) {
      ignored.push_back(argument);
      continue;
    }
    if (is_there(path / "meta.json")) {
      cases.push_back(path);
      continue;
    }
    const size_t before = cases.size();
    for (const auto& entry : fs::directory_iterator(path, unused)) {
      if (is_there(entry.path() / "meta.json")) cases.push_back(entry.path());
    }
    if (cases.size() == before) {
      throw DataError("verify", cat("neither a case nor a folder of cases: no meta.json in folder=", argument),
                      "Give folders of reference cases");
    }
    std::sort(cases.begin() + static_cast<std::ptrdiff_t>(before), cases.end());
  }
  if (cases.empty()) throw DataError("verify", "no case was given", "Give folders of reference cases");
  return cases;
}

}  // namespace welkin::verify
