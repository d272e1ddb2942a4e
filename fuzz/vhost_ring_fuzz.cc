// SPDX-License-Identifier: Apache-2.0
// Virtqueues of both layouts, their notes and the requests in them, made of any bytes; and messages
// of vhost-user. Nothing in them reaches beyond the memory they are in, and what is published is as
// much as was taken.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "door/common/guest_memory.h"
#include "door/vhost_user/blk_request.h"
#include "door/vhost_user/inflight_format.h"
#include "door/vhost_user/message.h"
#include "door/vhost_user/ring.h"
#include "door/vhost_user/virtio_format.h"
#include "input.h"

namespace cairn::door::vhost_user {
namespace {

using fuzz::Input;

constexpr size_t kMemory = 16384;
constexpr uint64_t kAddress = 0x1000;
constexpr size_t kRoundsMax = 8;
constexpr size_t kChainsMax = 32;

class HeapMemory final : public env::SharedMemory {
 public:
  HeapMemory() : pages_(new(std::align_val_t(4096)) std::byte[kMemory]{}) {
    bytes_ = MutableBytes(pages_, kMemory);
  }
  ~HeapMemory() override { ::operator delete[](pages_, std::align_val_t(4096)); }

 private:
  std::byte* pages_;
};

// Some bytes of the input to some place.
void poke(Input& input, MutableBytes memory) {
  const size_t at = input.value<uint16_t>() % memory.size();
  const Bytes bytes = input.take(input.value<uint8_t>());
  const size_t count = std::min(bytes.size(), memory.size() - at);
  std::ranges::copy(bytes.first(count), memory.begin() + static_cast<ptrdiff_t>(at));
}

void use(Ring& ring, GuestMemory& memory, Input& input, MutableBytes guest) {
  std::vector<Chain> out;
  BlkRequest request;
  for (size_t i = 0; i < kChainsMax; ++i) {
    Chain chain;
    const Ring::Got got = ring.take(chain);
    if (got == Ring::Got::kBroken) CHECK(ring.problem() != nullptr);
    if (got != Ring::Got::kChain) break;
    CHECK(chain.segments.size() <= kSegmentsMax);
    const Result<void> read = read_request(chain, memory, request);
    if (read) {
      CHECK(total_size(request.data) == request.data_size);
      for (const MutableBytes piece : request.data) {
        CHECK(piece.data() >= guest.data() &&
              piece.data() + piece.size() <= guest.data() + guest.size());
      }
      *request.status = std::byte{0};
    }
    out.push_back(std::move(chain));
    if (input.value<uint8_t>() % 2 == 0) continue;
    ring.put(out.back(), 1);
    out.pop_back();
    if (input.value<uint8_t>() % 2 == 0) (void)ring.publish();
  }
  (void)ring.publish();
  ring.pause_kicks();
  (void)ring.resume_kicks();
  (void)ring.base();
}

void run(Input& input) {
  const auto shape = input.value<uint8_t>();
  const bool is_packed = (shape & 1) != 0;
  const uint16_t size = shape & 8 ? 128 : 8;
  GuestMemory memory;
  auto heap = std::make_unique<HeapMemory>();
  const MutableBytes guest = heap->bytes();
  CHECK(memory.add(kAddress, std::move(heap)).has_value());
  const auto region = std::make_unique<HeapMemory>();
  const MutableBytes notes = region->bytes().first(inflight_region_size(size, is_packed));
  for (size_t i = 0; i < kRoundsMax && !input.is_over(); ++i) {
    poke(input, guest);
    if (input.value<uint8_t>() % 4 == 0) poke(input, notes);
    const auto base = input.value<uint16_t>();
    const RingOptions options{.size = size,
                              .descriptors = kAddress + input.value<uint8_t>() * 16,
                              .driver = kAddress + 4096 + input.value<uint8_t>() % 2 * 4,
                              .device = kAddress + 8192,
                              .is_packed = is_packed,
                              .has_event_index = (shape & 2) != 0,
                              .has_indirect = (shape & 4) != 0,
                              .base = {.available = base, .used = base},
                              .inflight = (shape & 16) != 0 ? notes : MutableBytes{},
                              .used_log_address = 0,
                              .log = nullptr};
    Result<std::unique_ptr<Ring>> ring = Ring::make(options, memory);
    if (!ring) continue;
    use(**ring, memory, input, guest);
    poke(input, guest);
    use(**ring, memory, input, guest);
  }
}

}  // namespace
}  // namespace cairn::door::vhost_user

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  namespace vhost_user = cairn::door::vhost_user;
  const cairn::Bytes all = std::as_bytes(std::span(bytes, size));
  if (all.size() >= sizeof(vhost_user::MessageHeader)) {
    const auto header = cairn::load<vhost_user::MessageHeader>(all);
    const cairn::Bytes payload = all.subspan(sizeof(header));
    if (vhost_user::check(header)) {
      (void)vhost_user::decode(header, payload.first(std::min<size_t>(payload.size(), header.size)),
                               size % 3);
    }
  }
  cairn::fuzz::Input input(all);
  vhost_user::run(input);
  return 0;
}
