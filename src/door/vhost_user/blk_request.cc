// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/blk_request.h"

#include <algorithm>
#include <array>
#include <span>

namespace cairn::door::vhost_user {

namespace {

// The last byte that the device may write, which is the status. Those before it stay.
Result<void> find_status(std::span<const Segment> segments, GuestMemory& memory,
                         BlkRequest& request) {
  for (size_t i = segments.size(); i-- > 0;) {
    const Segment& last = segments[i];
    if (last.length == 0) continue;
    if (!last.is_writable) break;
    request.status_address = last.address + last.length - 1;
    const GuestMemory::Piece piece = memory.find(request.status_address, 1, true);
    if (!piece.is_valid()) return fail(Errc::kInvalid, "a status outside guest memory");
    request.status = piece.bytes.data();
    return {};
  }
  return fail(Errc::kInvalid, "a request without a place for its status");
}

Result<void> add_data(Segment segment, GuestMemory& memory, BlkRequest& request) {
  while (segment.length > 0) {
    const GuestMemory::Piece piece =
        memory.find_front(segment.address, segment.length, segment.is_writable);
    if (!piece.is_valid()) return fail(Errc::kUnreachable, "data outside guest memory");
    const auto count = static_cast<uint32_t>(piece.bytes.size());
    request.data.push_back(piece.bytes);
    request.places.push_back(
        {.address = segment.address, .length = count, .is_writable = segment.is_writable});
    request.data_size += count;
    segment.address += count;
    segment.length -= count;
  }
  return {};
}

Result<void> read_header(Segment& segment, GuestMemory& memory, MutableBytes& left) {
  const auto count = static_cast<uint32_t>(std::min<size_t>(segment.length, left.size()));
  const GuestMemory::Piece piece = memory.find(segment.address, count, false);
  if (!piece.is_valid()) return fail(Errc::kUnreachable, "a header outside guest memory");
  std::ranges::copy(piece.bytes, left.begin());
  left = left.subspan(count);
  segment.address += count;
  segment.length -= count;
  return {};
}

}  // namespace

Result<void> read_request(const Chain& chain, GuestMemory& memory, BlkRequest& request) {
  request.data.clear();
  request.places.clear();
  request.data_size = 0;
  if (const Result<void> found = find_status(chain.segments, memory, request); !found) return found;

  uint64_t writable = 0;
  for (const Segment& each : chain.segments) writable += each.is_writable ? each.length : 0;
  uint64_t to_write = writable - 1;
  std::array<std::byte, sizeof(BlkHeader)> header{};
  MutableBytes left = header;
  bool reads = true;
  for (Segment segment : chain.segments) {
    if (segment.is_writable) {
      reads = false;
      segment.length = static_cast<uint32_t>(std::min<uint64_t>(segment.length, to_write));
      to_write -= segment.length;
    } else if (!reads && segment.length > 0) {
      return fail(Errc::kUnreachable, "what the device reads stands behind what it writes");
    }
    if (!segment.is_writable && !left.empty() && segment.length > 0) {
      if (const Result<void> read = read_header(segment, memory, left); !read) return read;
    }
    if (const Result<void> added = add_data(segment, memory, request); !added) return added;
  }
  if (!left.empty()) return fail(Errc::kUnreachable, "a request shorter than its header");
  const auto fields = load<BlkHeader>(header);
  request.type = fields.type;
  request.sector = fields.sector;
  return {};
}

}  // namespace cairn::door::vhost_user
