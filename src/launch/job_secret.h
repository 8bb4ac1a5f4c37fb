// SPDX-License-Identifier: Apache-2.0
// The secret of a job, which its launcher hands to all processes through their environment or a file. It never goes into a
// command line, which every user of the machine can read, or into a log.
#pragma once

#include <string>

#include "launch/batch/environment.h"

namespace welkin::launch {

// WELKIN_JOB_SECRET, at least 16 bytes, or the content of WELKIN_JOB_SECRET_FILE, which only its owner may read. Empty where
// neither is set. ConfigError, without the secret, for a short secret, for both at once, or for a file that others can read.
std::string job_secret(const ReadVariable& read);

// 32 random bytes in hexadecimal digits: a new secret, or a job's nonce. CommError where the system gives none.
std::string random_token();

}  // namespace welkin::launch
