// SPDX-License-Identifier: Apache-2.0
// Shared by the functions of welkin.h on this side of torch: exceptions become texts, pointers of the caller are checked, and a
// process either trains or steps with models.
#pragma once

#include <c10/util/Exception.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "apps/capi/functions.h"
#include "core/error.h"
#include "core/text.h"
#include "train/coupling/field_layout.h"

namespace welkin::apps::capi {

inline void say(char* error, std::string_view text) {
  const size_t count = std::min(text.size(), static_cast<size_t>(kWelkinErrorBytes - 1));
  std::memcpy(error, text.data(), count);
  error[count] = '\0';
}

template <typename Body>
welkin_status guarded(char* error, const Body& body) {
  try {
    body();
    return WELKIN_OK;
  } catch (const Error& thrown) {
    say(error, thrown.what());
    return static_cast<welkin_status>(thrown.exit_code());
  } catch (const c10::Error& thrown) {
    say(error, thrown.what_without_backtrace());
  } catch (const std::exception& thrown) {
    say(error, thrown.what());
  } catch (...) {
    say(error, "[coupling] an unknown error");
  }
  return WELKIN_FAILED;
}

inline void require(const void* pointer, const char* name) {
  if (pointer == nullptr) throw ConfigError("coupling", cat("a pointer is null: argument=", name), "Give its address");
}

// Splits at blanks. Blanks in quotes of either kind belong to the word: --data_root '/my data'.
inline std::vector<std::string> words_of(const std::string& options) {
  std::vector<std::string> words;
  bool is_word = false;
  char quote = '\0';
  for (const char letter : options) {
    const bool is_blank = quote == '\0' && std::isspace(static_cast<unsigned char>(letter)) != 0;
    if (is_blank) {
      is_word = false;
      continue;
    }
    if (!is_word) words.emplace_back();
    is_word = true;
    if (quote == '\0' && (letter == '\'' || letter == '"')) {
      quote = letter;
    } else if (letter == quote) {
      quote = '\0';
    } else {
      words.back() += letter;
    }
  }
  if (quote != '\0') throw ConfigError("coupling", cat("a quote is not closed: options=", options), "Close it");
  return words;
}

// `dims`: the number of strides.
inline train::FieldLayout field_layout(welkin_type type, const int64_t* strides, size_t dims) {
  train::FieldLayout layout{.is_double = type == WELKIN_FLOAT64};
  if (type != WELKIN_FLOAT32 && type != WELKIN_FLOAT64) {
    throw ConfigError("coupling", cat("an unknown type of values: type=", static_cast<int>(type)),
                      "Give WELKIN_FLOAT32 or WELKIN_FLOAT64");
  }
  if (strides != nullptr) layout.strides.assign(strides, strides + dims);
  return layout;
}

// A run that trains owns the process: its torch settings hold for the whole process (threads, instruction set, precision).
class ProcessUse {
 public:
  enum Kind { Models, Training };
  // ConfigError while the process is used for the other kind, or already trains.
  explicit ProcessUse(Kind kind) : kind_(kind) {
    const std::lock_guard lock(mutex());
    if (users(Training) > 0 || (kind == Training && users(Models) > 0)) {
      const bool trains = users(Training) > 0;
      throw ConfigError("coupling",
                        cat(trains ? "a run trains in this process" : "models are open in this process",
                            ", whose settings of torch hold for all of it: ", trains ? "trainings=" : "models=",
                            trains ? users(Training) : users(Models)),
                        trains ? "End it with welkin_train_close before" : "Close them with welkin_close before");
    }
    ++users(kind_);
  }
  ~ProcessUse() {
    const std::lock_guard lock(mutex());
    --users(kind_);
  }
  ProcessUse(const ProcessUse&) = delete;
  ProcessUse& operator=(const ProcessUse&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static int& users(Kind kind) {
    static int counts[2] = {0, 0};
    return counts[kind];
  }

  Kind kind_;
};

}  // namespace welkin::apps::capi
