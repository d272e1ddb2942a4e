// SPDX-License-Identifier: Apache-2.0
#include "nvme/format/data_list.h"

#include <algorithm>
#include <array>

#include "nvme/format/pci_format.h"

namespace cairn::nvme {

namespace {

void append(std::vector<HostPiece>& pieces, uint64_t address, uint64_t length) {
  if (length == 0) return;
  // A piece that ends where addresses end has no neighbour.
  const bool joins =
      !pieces.empty() && address != 0 && pieces.back().address + pieces.back().length == address;
  if (joins) {
    pieces.back().length += length;
  } else {
    pieces.push_back({.address = address, .length = length});
  }
}

// Pages that follow the first one, named by entries of 8 bytes. A list page that is too small for
// what is left ends with the address of the next one.
class PrpList {
 public:
  PrpList(const HostMemory& memory, uint32_t page_size) : memory_(memory), page_size_(page_size) {}

  Status walk(uint64_t at, uint64_t bytes, std::vector<HostPiece>& pieces) {
    if (!is_aligned(at, sizeof(Le64))) return final_status(StatusCode::kPrpOffsetInvalid);
    while (bytes > 0) {
      const uint64_t room = (page_size_ - at % page_size_) / sizeof(Le64);
      const uint64_t needed = (bytes + page_size_ - 1) / page_size_;
      const bool chained = needed > room;
      uint64_t here = chained ? room - 1 : needed;
      while (here > 0) {
        const size_t count = std::min<uint64_t>(here, entries_.size());
        if (!load_entries(at, count)) return final_status(StatusCode::kDataTransferError);
        for (size_t i = 0; i < count; ++i) {
          if (!is_aligned(entries_[i], page_size_)) {
            return final_status(StatusCode::kPrpOffsetInvalid);
          }
          const uint64_t length = std::min<uint64_t>(bytes, page_size_);
          append(pieces, entries_[i], length);
          bytes -= length;
        }
        here -= count;
        at += count * sizeof(Le64);
      }
      if (!chained) break;
      if (!load_entries(at, 1)) return final_status(StatusCode::kDataTransferError);
      at = entries_[0];
      // A next list begins its page, so that each but the first moves the walk on.
      if (!is_aligned(at, page_size_)) return final_status(StatusCode::kPrpOffsetInvalid);
    }
    return {};
  }

 private:
  bool load_entries(uint64_t at, size_t count) {
    return memory_.read(at, std::as_writable_bytes(std::span(entries_).first(count)));
  }

  const HostMemory& memory_;
  uint64_t page_size_;
  std::array<Le64, 32> entries_;
};

Status find_prps(const Sqe& sqe, const DataShape& shape, const HostMemory& memory,
                 std::vector<HostPiece>& pieces) {
  const PrpPair pair = PrpPair::decode(sqe);
  if (!is_aligned(pair.first, 4)) return final_status(StatusCode::kPrpOffsetInvalid);
  const uint64_t first =
      std::min<uint64_t>(shape.bytes, shape.page_size - pair.first % shape.page_size);
  append(pieces, pair.first, first);
  const uint64_t rest = shape.bytes - first;
  if (rest == 0) return {};
  if (rest > shape.page_size) {
    return PrpList(memory, shape.page_size).walk(pair.second, rest, pieces);
  }
  if (!is_aligned(pair.second, shape.page_size)) {
    return final_status(StatusCode::kPrpOffsetInvalid);
  }
  append(pieces, pair.second, rest);
  return {};
}

bool is_segment(const SglDescriptor& descriptor) {
  return descriptor.id == SglId::kSegment || descriptor.id == SglId::kLastSegment;
}

class Sgl {
 public:
  Sgl(const HostMemory& memory, std::vector<HostPiece>& pieces)
      : memory_(memory), pieces_(pieces) {}

  Status walk(SglDescriptor next) {
    if (!is_segment(next)) return add(next);
    for (;;) {
      const bool last = next.id == SglId::kLastSegment;
      if (next.length == 0 || !is_aligned(next.length, sizeof(SglDescriptor))) {
        return final_status(StatusCode::kInvalidSglSegment);
      }
      const size_t count = next.length / sizeof(SglDescriptor);
      if (count > kSglDescriptorsMax - seen_) return final_status(StatusCode::kInvalidSglCount);
      seen_ += count;
      // All but the last one are data; that one leads on, unless this is the last segment.
      const uint64_t begin = next.address;
      if (Status status = add_all(begin, last ? count : count - 1); !status.ok()) return status;
      if (last) return {};
      const uint64_t end = begin + (count - 1) * sizeof(SglDescriptor);
      if (!memory_.read(end, mutable_bytes_of(next))) {
        return final_status(StatusCode::kDataTransferError);
      }
      if (!is_segment(next)) return final_status(StatusCode::kInvalidSglSegment);
    }
  }
  uint64_t bytes() const { return bytes_; }

 private:
  Status add(const SglDescriptor& descriptor) {
    if (descriptor.id != SglId::kDataBlockAddress) {
      return final_status(is_segment(descriptor) ? StatusCode::kInvalidSglSegment
                                                 : StatusCode::kSglDescriptorTypeInvalid);
    }
    append(pieces_, descriptor.address, descriptor.length);
    bytes_ += descriptor.length;
    return {};
  }
  Status add_all(uint64_t at, size_t count) {
    std::array<SglDescriptor, 16> some;
    while (count > 0) {
      const auto part = std::span(some).first(std::min(count, some.size()));
      if (!memory_.read(at, std::as_writable_bytes(part))) {
        return final_status(StatusCode::kDataTransferError);
      }
      for (const SglDescriptor& descriptor : part) {
        if (Status status = add(descriptor); !status.ok()) return status;
      }
      at += part.size_bytes();
      count -= part.size();
    }
    return {};
  }

  const HostMemory& memory_;
  std::vector<HostPiece>& pieces_;
  size_t seen_ = 0;
  uint64_t bytes_ = 0;
};

void cut_off(std::vector<HostPiece>& pieces, uint64_t excess) {
  while (excess >= pieces.back().length) {
    excess -= pieces.back().length;
    pieces.pop_back();
  }
  pieces.back().length -= excess;
}

Status find_sgl(const Sqe& sqe, const DataShape& shape, const HostMemory& memory,
                std::vector<HostPiece>& pieces) {
  Sgl sgl(memory, pieces);
  if (Status status = sgl.walk(sqe.sgl1); !status.ok()) return status;
  if (sgl.bytes() == shape.bytes) return {};
  if (sgl.bytes() < shape.bytes || !shape.may_be_longer) {
    return final_status(StatusCode::kDataSglLengthInvalid);
  }
  cut_off(pieces, sgl.bytes() - shape.bytes);
  return {};
}

}  // namespace

Status find_data(const Sqe& sqe, const DataShape& shape, const HostMemory& memory,
                 std::vector<HostPiece>& pieces) {
  pieces.clear();
  switch (sqe.psdt()) {
    case Psdt::kPrp:
      return find_prps(sqe, shape, memory, pieces);
    case Psdt::kSgl:
    case Psdt::kSglMetadataSgl:  // there is no metadata for its other pointer to be about
      return find_sgl(sqe, shape, memory, pieces);
    case Psdt::kReserved:
      break;
  }
  return final_status(StatusCode::kInvalidField);
}

}  // namespace cairn::nvme
