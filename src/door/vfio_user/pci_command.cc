// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/pci_command.h"

#include <cstring>
#include <utility>

#include "door/vfio_user/submission_queue.h"

namespace cairn::door::vfio_user {

namespace {

// For how long a command waits for a buffer. Others keep them for as long as drives take.
constexpr Duration kBufferTimeout = 60_s;

class Reader final : public nvme::HostMemory {
 public:
  explicit Reader(door::GuestMemory& memory) : memory_(memory) {}
  bool read(uint64_t address, MutableBytes into) const override {
    const door::GuestMemory::Piece piece = memory_.find(address, into.size(), false);
    if (!piece.is_valid()) return false;
    std::memcpy(into.data(), piece.bytes.data(), into.size());
    return true;
  }

 private:
  door::GuestMemory& memory_;
};

}  // namespace

// Pieces may cross regions that follow each other in the guest's memory and nowhere else.
nvme::Status PciCommand::find(size_t bytes, bool for_writing) {
  pieces_.clear();
  regions_.clear();
  if (bytes == 0) return {};
  const nvme::Status status = nvme::find_data(
      sqe, {.bytes = bytes, .page_size = path_.page_size, .may_be_longer = !for_writing},
      Reader(path_.memory), where_);
  if (!status.ok()) return status;
  for (nvme::HostPiece rest : where_) {
    while (rest.length > 0) {
      const auto part = path_.memory.find_front(rest.address, rest.length, for_writing);
      if (!part.is_valid() || part.bytes.empty()) {
        return nvme::final_status(nvme::StatusCode::kDataTransferError);
      }
      pieces_.push_back(part.bytes);
      regions_.push_back(part.region);
      rest.address += part.bytes.size();
      rest.length -= part.bytes.size();
    }
  }
  return {};
}

bool PciCommand::hold() {
  for (; held_ < regions_.size(); ++held_) {
    if (!regions_[held_]->users().enter()) return false;
  }
  return true;
}

void PciCommand::release() {
  while (held_ > 0) regions_[--held_]->users().leave();
}

bool PciCommand::uses(uint64_t address, uint64_t size) const {
  for (size_t i = 0; i < held_; ++i) {
    const door::GuestRegion& region = *regions_[i];
    const uint64_t last = region.address() + (region.size() - 1);
    if (size > 0 && region.address() - address < size) return true;
    if (address >= region.address() && address <= last) return true;
  }
  return false;
}

void PciCommand::note_writes() const {
  if (!is_written_) return;
  for (const nvme::HostPiece& piece : where_) path_.memory.note_write(piece.address, piece.length);
}

bool PciCommand::needs_buffer() const {
  const uint32_t alignment = queue_.alignment_for(sqe);
  if (alignment <= 1) return false;
  for (const MutableBytes piece : pieces_) {
    const bool fits = is_aligned(reinterpret_cast<uintptr_t>(piece.data()), alignment) &&
                      is_aligned(piece.size(), alignment);
    if (!fits) return true;
  }
  return false;
}

Result<nvme::Pieces> PciCommand::lend(size_t bytes, bool for_writing) {
  fault_ = find(bytes, for_writing);
  if (fault_.ok() && !hold()) fault_ = nvme::final_status(nvme::StatusCode::kDataTransferError);
  if (!fault_.ok()) return fail(Errc::kInvalid, "the guest's data pointer");
  is_written_ = for_writing && bytes > 0;
  if (!needs_buffer()) return nvme::Pieces(pieces_);
  std::optional<Buffer> buffer = path_.buffers.try_allocate(bytes);
  if (!buffer) return fail(Errc::kLimit, "all buffers are out");
  buffer_ = std::move(*buffer);
  buffered_ = buffer_.bytes();
  path_.bytes_copied += bytes;
  fills_guest_ = for_writing;
  if (!for_writing) {
    size_t at = 0;
    for (const MutableBytes piece : pieces_) {
      std::memcpy(buffered_.subspan(at).data(), piece.data(), piece.size());
      at += piece.size();
    }
  }
  return nvme::Pieces(&buffered_, 1);
}

task::Task<Result<nvme::Pieces>> PciCommand::to_host(size_t bytes) { co_return lend(bytes, true); }

task::Task<Result<nvme::Pieces>> PciCommand::from_host(size_t bytes) {
  co_return lend(bytes, false);
}

task::Task<Result<MutableBytes>> PciCommand::scratch(size_t bytes) {
  drop_buffer();
  Result<Buffer> buffer = co_await path_.buffers.allocate(bytes, kBufferTimeout, cancel_token());
  if (!buffer) co_return fail(buffer.error());
  buffer_ = std::move(*buffer);
  co_return buffer_.bytes();
}

void PciCommand::drop_buffer() {
  buffered_ = {};
  fills_guest_ = false;
  if (buffer_.empty()) return;
  buffer_ = Buffer();
  path_.buffers.released();
}

std::optional<nvme::Pieces> PciCommand::here_from_host(size_t bytes) {
  if (!find(bytes, false).ok()) return std::nullopt;
  return nvme::Pieces(pieces_);
}

std::optional<nvme::Pieces> PciCommand::here_to_host(size_t bytes) {
  if (!find(bytes, true).ok()) return std::nullopt;
  return nvme::Pieces(pieces_);
}

// The guest's memory is here, so nothing needs to be borrowed for longer.
bool PciCommand::borrow(Bytes bytes, task::Gate& /*keeper*/) { return copy_out(bytes).ok(); }

nvme::Status PciCommand::copy_out(Bytes from) {
  const nvme::Status status = find(from.size(), true);
  if (!status.ok()) return status;
  for (const MutableBytes piece : pieces_) {
    std::memcpy(piece.data(), from.data(), piece.size());
    from = from.subspan(piece.size());
  }
  return {};
}

nvme::Status PciCommand::copy_in(MutableBytes into) {
  const nvme::Status status = find(into.size(), false);
  if (!status.ok()) return status;
  for (const MutableBytes piece : pieces_) {
    std::memcpy(into.data(), piece.data(), piece.size());
    into = into.subspan(piece.size());
  }
  return {};
}

void PciCommand::complete(const nvme::Cqe& completion) {
  cqe = completion;
  if (!fault_.ok()) cqe.set_status(fault_);
  if (fills_guest_ && cqe.get_status().ok()) {
    Bytes rest = buffered_;
    for (const MutableBytes piece : pieces_) {
      std::memcpy(piece.data(), rest.data(), piece.size());
      rest = rest.subspan(piece.size());
    }
  }
  release();
  drop_buffer();
  is_written_ = false;
  fault_ = {};
  cancel_.reset();
  queue_.ended(*this);
}

task::CancelToken PciCommand::cancel_token() {
  if (!cancel_) cancel_.emplace();
  return cancel_->token();
}

void PciCommand::cancel() {
  if (!cancel_) cancel_.emplace();
  cancel_->request();
}

}  // namespace cairn::door::vfio_user
