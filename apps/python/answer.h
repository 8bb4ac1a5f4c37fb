// SPDX-License-Identifier: Apache-2.0
// Wraps calls of torch's binding: every exception becomes a std::runtime_error whose text begins with the exit code of its
// kind. torch turns it into a RuntimeError, and python/welkin/_errors.py into the exception of that kind.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/text.h"
#include "train/device/memory_report.h"

namespace welkin::apps::python {

[[noreturn]] inline void throw_answer(ExitCode code, std::string_view text) {
  throw std::runtime_error(cat("welkin-error ", static_cast<int>(code), "\n", text));
}

// Call inside a catch block: for exceptions that are not Welkin's, which may mean that memory is exhausted.
[[noreturn]] inline void throw_other(std::string_view text) {
  const auto memory = train::memory_error_if_any(/*limit_bytes=*/0);
  throw_answer(ExitCode::Other, memory ? std::string_view(memory->what()) : text);
}

template <typename Body>
auto answered(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const Error& error) {
    throw_answer(error.exit_code(), error.what());
  } catch (const c10::Error& error) {  // torch's text without its backtrace
    throw_other(error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw_other(error.what());
  }
}

}  // namespace welkin::apps::python
