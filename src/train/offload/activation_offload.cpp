// SPDX-License-Identifier: Apache-2.0
#include "train/offload/activation_offload.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/set.h>
#include <c10/core/StorageImpl.h>

#include <map>
#include <utility>

#include "train/offload/saved_tensors.h"

namespace welkin::train {
namespace {

// A smaller storage is not worth a transfer.
constexpr size_t kLeastBytes = size_t{32} << 10;

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

at::Tensor bytes_of_storage(const c10::Storage& storage) {
  at::Tensor bytes = at::empty({0}, at::TensorOptions(at::kByte).device(storage.device()));
  return bytes.set_(storage, 0, {static_cast<int64_t>(storage.nbytes())}, {1});
}

struct AsItIs : SavedTensor {
  explicit AsItIs(at::Tensor tensor) : kept(std::move(tensor)) {}
  at::Tensor value() override { return kept; }

  at::Tensor kept;
};

}  // namespace

// Storages that the graph of one part has saved. Every reference to one of them keeps the part alive.
class SavedPart {
 public:
  explicit SavedPart(std::shared_ptr<SavedPart> before) : before_(before) {}

  // The storage's number here; -1: it is not among these.
  int64_t find(const c10::StorageImpl* storage) const {
    const auto known = numbers_.find(storage);
    if (known == numbers_.end() || places_[known->second].original.expired()) return -1;
    return static_cast<int64_t>(known->second);
  }
  size_t add(const c10::Storage& storage) {
    c10::StorageImpl* const impl = storage.unsafeGetStorageImpl();
    numbers_[impl] = places_.size();
    places_.push_back({.now = storage, .original = WeakStorage(storage.getWeakStorageImpl()), .bytes = storage.nbytes()});
    return places_.size() - 1;
  }

  // Moves the storages into the store and frees them. Returns the bytes.
  int64_t move_out(ActivationStore& store) {
    if (stored_ != nullptr || places_.empty()) return 0;
    std::vector<at::Tensor> pieces;
    for (const Place& place : places_) pieces.push_back(bytes_of_storage(place.now));
    offsets_ = piece_offsets(pieces);
    stored_ = store.put(pieces);
    for (Place& place : places_) place.now = c10::Storage();
    return static_cast<int64_t>(offsets_.back());
  }

  void start() {
    if (stored_ != nullptr && !memory_.defined()) stored_->start();
  }
  void start_with_the_one_before() {
    start();
    if (const auto before = before_.lock()) before->start();
  }

  c10::Storage storage(size_t number) {
    Place& place = places_.at(number);
    if (!place.now) {
      if (!memory_.defined()) memory_ = stored_->bytes();
      place.now = storage_within(offsets_[number], place.bytes);
    }
    return place.now;
  }

 private:
  struct Place {
    c10::Storage now;  // null: the bytes are in the store, or on their way back
    WeakStorage original;
    size_t bytes = 0;
  };

  // A storage over a piece of the memory that has come back; it keeps that memory alive.
  c10::Storage storage_within(size_t offset, size_t bytes) const {
    auto owner = std::make_unique<at::Tensor>(memory_);
    const auto let_go = [](void* context) { std::unique_ptr<at::Tensor>(static_cast<at::Tensor*>(context)).reset(); };
    auto* const begin = static_cast<std::byte*>(memory_.mutable_data_ptr()) + offset;
    at::DataPtr data(begin, owner.release(), let_go, memory_.device());
    return c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, std::move(data),
                                                              /*allocator=*/nullptr, /*resizable=*/false));
  }

  std::weak_ptr<SavedPart> before_;
  std::map<const c10::StorageImpl*, size_t> numbers_;
  std::vector<Place> places_;
  std::vector<size_t> offsets_;
  std::unique_ptr<StoredPieces> stored_;
  at::Tensor memory_;
};

namespace {

// A tensor of a part: its storage's number, and its place in the storage.
class OfPart : public SavedTensor {
 public:
  OfPart(std::shared_ptr<SavedPart> part, size_t number, const at::Tensor& tensor)
      : part_(std::move(part)),
        number_(number),
        sizes_(tensor.sizes().vec()),
        strides_(tensor.strides().vec()),
        offset_(tensor.storage_offset()),
        options_(tensor.options().requires_grad(false)) {}

  at::Tensor value() override {
    const at::NoGradGuard no_grad;
    at::Tensor tensor = at::empty({0}, options_);
    return tensor.set_(part_->storage(number_), offset_, sizes_, strides_);
  }

 private:
  std::shared_ptr<SavedPart> part_;
  size_t number_;
  std::vector<int64_t> sizes_, strides_;
  int64_t offset_;
  at::TensorOptions options_;
};

}  // namespace

// Takes the tensors that one part saves. Those that the part before has saved (its output, this one's input) are shared.
class PartTaker : public SavedTensorTaker {
 public:
  PartTaker(const ActivationOffload& offload, std::shared_ptr<SavedPart> part, std::shared_ptr<SavedPart> before)
      : offload_(offload), part_(std::move(part)), before_(std::move(before)) {}

  std::unique_ptr<SavedTensor> take(const at::Tensor& tensor) override {
    if (offload_.stays(tensor)) return std::make_unique<AsItIs>(tensor);
    const c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
    for (const auto& part : {before_, part_}) {
      const int64_t number = part == nullptr ? -1 : part->find(storage);
      if (number >= 0) return std::make_unique<OfPart>(part, static_cast<size_t>(number), tensor);
    }
    return std::make_unique<OfPart>(part_, part_->add(tensor.storage()), tensor);
  }

 private:
  const ActivationOffload& offload_;
  std::shared_ptr<SavedPart> part_, before_;
};

ActivationOffload::ActivationOffload(std::unique_ptr<ActivationStore> store, const std::vector<at::Tensor>& weights)
    : store_(std::move(store)) {
  for (const at::Tensor& weight : weights) weights_.insert(weight.storage().unsafeGetStorageImpl());
}

ActivationOffload::~ActivationOffload() = default;

bool ActivationOffload::stays(const at::Tensor& tensor) const {
  if (!tensor.has_storage() || tensor.layout() != at::kStrided) return true;
  const c10::Storage& storage = tensor.storage();
  return storage.nbytes() < kLeastBytes || weights_.contains(storage.unsafeGetStorageImpl());
}

void ActivationOffload::move_out(SavedPart& part) { stored_bytes_ += part.move_out(*store_); }

// The input of the next part does not come from the newest part.
void ActivationOffload::begin_pass() {
  if (const std::shared_ptr<SavedPart> before = newest_.lock()) move_out(*before);
  newest_.reset();
}

model::Tensors ActivationOffload::run(model::Tensors in, const model::Body& body) {
  if (!at::GradMode::is_enabled()) return body(std::move(in));
  const std::shared_ptr<SavedPart> before = newest_.lock();
  if (before != nullptr) move_out(*before);
  const auto part = std::make_shared<SavedPart>(before);
  model::Tensors out;
  {
    PartTaker taker(*this, part, before);
    const SavedTensorScope scope(taker);
    out = body(std::move(in));
  }
  newest_ = part;
  for (const at::Tensor& x : out) {
    if (!x.requires_grad()) continue;
    x.register_hook([weak = std::weak_ptr(part)](const at::Tensor& /*gradient*/) {
      if (const auto alive = weak.lock()) alive->start_with_the_one_before();
    });
  }
  return out;
}

void ActivationOffload::install(model::Site& site) {
  site.install([this](model::Tensors in, const model::Body& body) { return run(std::move(in), body); });
}

}  // namespace welkin::train
