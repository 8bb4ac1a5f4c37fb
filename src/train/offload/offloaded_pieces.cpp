// SPDX-License-Identifier: Apache-2.0
#include "train/offload/offloaded_pieces.h"

#include <utility>

namespace welkin::train {
namespace {

std::vector<at::Tensor> pieces_of(const parallel::ParamTable& table) {
  std::vector<at::Tensor> pieces;
  for (const parallel::ParamRow& row : table.rows()) pieces.push_back(row.shard);
  return pieces;
}

}  // namespace

OffloadedPieces::OffloadedPieces(std::unique_ptr<parallel::ShardedParallel> exchange, parallel::ParamTable& table,
                                 const std::filesystem::path& folder)
    : table_(table), exchange_(std::move(exchange)), store_(folder, pieces_of(table)) {
  for (size_t number = 0; number < table.rows().size(); ++number) {
    parallel::ParamRow& row = table.rows()[number];
    if (row.local.requires_grad()) trained_.push_back(number);
    row.read = [this, number] { return store_.read(number); };
    row.write = [this, number](const at::Tensor& values) { store_.write(number, values); };
  }
  exchange_->keep_pieces(*this);
}

void OffloadedPieces::start_pieces(const std::vector<parallel::ParamRow*>& rows) {
  for (const parallel::ParamRow* row : rows) store_.start(number_of(row));
}

void OffloadedPieces::wait_for_pieces(const std::vector<parallel::ParamRow*>& rows) {
  for (const parallel::ParamRow* row : rows) store_.wait(number_of(row));
}

void OffloadedPieces::let_go_of_pieces(const std::vector<parallel::ParamRow*>& rows) {
  for (const parallel::ParamRow* row : rows) store_.let_go(number_of(row), /*is_changed=*/false);
}

void OffloadedPieces::start(const std::vector<size_t>& parameters) {
  for (const size_t parameter : parameters) store_.start(trained_[parameter]);
}

void OffloadedPieces::wait(const std::vector<size_t>& parameters) {
  for (const size_t parameter : parameters) store_.wait(trained_[parameter]);
}

void OffloadedPieces::let_go(const std::vector<size_t>& parameters, bool is_changed) {
  for (const size_t parameter : parameters) store_.let_go(trained_[parameter], is_changed);
}

}  // namespace welkin::train
