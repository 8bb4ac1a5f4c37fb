// SPDX-License-Identifier: Apache-2.0
// Stands for torch's header of this name: modules only name the two classes (README.md).
#pragma once

namespace torch::serialize {

class InputArchive;
class OutputArchive;

}  // namespace torch::serialize
