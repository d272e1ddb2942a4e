// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/driver_ring.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "door/vhost_user/packed_notes.h"
#include "door/vhost_user/virtio_format.h"
#include "env/shared_word.h"

namespace cairn::door::vhost_user {

namespace {

constexpr size_t kPart = 4096;  // parts begin at whole pages

size_t descriptors_room(uint16_t size) { return align_up(size * sizeof(SplitDescriptor), kPart); }
size_t driver_room(uint16_t size, bool is_packed) {
  return align_up(is_packed ? kEventSize : available_size(size), kPart);
}

uint16_t write_flag(const Segment& segment) { return segment.is_writable ? kDescriptorWrite : 0; }

// What both layouts have in common.
class Base : public DriverRing {
 public:
  explicit Base(const DriverRingOptions& options) : options_(options), tokens_(options.size) {
    const size_t driver = descriptors_room(options.size);
    const size_t device = driver + driver_room(options.size, options.is_packed);
    ring_ = options.memory.data();
    driver_ = ring_ + driver;
    device_ = ring_ + device;
    place_ = {.descriptors = options.address,
              .driver = options.address + driver,
              .device = options.address + device};
    for (uint16_t i = options.size; i-- > 0;) free_.push_back(i);
  }

 protected:
  uint16_t take_free() {
    const uint16_t index = free_.back();
    free_.pop_back();
    return index;
  }
  MutableBytes descriptor(size_t index) const { return {ring_ + index * 16, 16}; }

  const DriverRingOptions options_;
  std::byte* ring_ = nullptr;
  std::byte* driver_ = nullptr;
  std::byte* device_ = nullptr;
  std::vector<uint64_t> tokens_;  // by descriptor, or by id
  std::vector<uint16_t> free_;    // descriptors, or ids
};

class SplitDriver final : public Base {
 public:
  explicit SplitDriver(const DriverRingOptions& options) : Base(options), chains_(options.size) {}

  bool add(std::span<const Segment> segments, uint64_t token, const Table* table) override {
    CHECK(!segments.empty(), "a chain has a descriptor");
    if (free_.size() < (table != nullptr ? 1 : segments.size())) return false;
    const uint16_t head = table != nullptr ? add_table(segments, *table) : add_chain(segments);
    tokens_[head] = token;
    ++outstanding_;
    env::store_shared<uint16_t>(driver_ + kRingEntries + 2 * (available_ % options_.size), head);
    env::store_shared(driver_ + kRingIndex, ++available_);
    return true;
  }
  bool wants_kick() override {
    env::shared_fence();
    const uint16_t before = std::exchange(told_, available_);
    if (!options_.has_event_index) {
      return (env::load_shared<uint16_t>(device_ + kRingFlags) & kUsedNoNotify) == 0;
    }
    const auto event = env::load_shared<uint16_t>(device_ + kRingEntries + 8 * options_.size);
    return static_cast<uint16_t>(available_ - event - 1) <
           static_cast<uint16_t>(available_ - before);
  }
  std::optional<Done> take() override {
    if (is_broken_ || env::load_shared<uint16_t>(device_ + kRingIndex) == used_) {
      return std::nullopt;
    }
    const auto element =
        load<UsedElement>({device_ + kRingEntries + 8 * (used_ % options_.size), 8});
    if (element.id >= options_.size || chains_[element.id].empty()) {
      is_broken_ = true;
      return std::nullopt;
    }
    ++used_;
    --outstanding_;
    const Done done{.token = tokens_[element.id], .written = element.length};
    std::vector<uint16_t>& chain = chains_[element.id];
    free_.insert(free_.end(), chain.begin(), chain.end());
    chain.clear();
    return done;
  }
  bool want_call() override {
    if (options_.has_event_index) {
      env::store_shared(driver_ + kRingEntries + 2 * options_.size, used_);
    }
    env::shared_fence();
    return env::load_shared<uint16_t>(device_ + kRingIndex) != used_;
  }

 private:
  uint16_t add_chain(std::span<const Segment> segments) {
    std::vector<uint16_t> chain;
    uint16_t next = 0;
    for (size_t i = segments.size(); i-- > 0;) {
      const bool is_last = i + 1 == segments.size();
      const uint16_t index = take_free();
      const uint16_t flags = write_flag(segments[i]) | (is_last ? uint16_t{0} : kDescriptorNext);
      store(descriptor(index), SplitDescriptor{.address = segments[i].address,
                                               .length = segments[i].length,
                                               .flags = flags,
                                               .next = next});
      next = index;
      chain.push_back(index);
    }
    chains_[next] = std::move(chain);
    return next;
  }
  uint16_t add_table(std::span<const Segment> segments, const Table& table) {
    for (size_t i = 0; i < segments.size(); ++i) {
      const bool is_last = i + 1 == segments.size();
      const uint16_t flags = write_flag(segments[i]) | (is_last ? uint16_t{0} : kDescriptorNext);
      store(table.bytes.subspan(i * 16), SplitDescriptor{.address = segments[i].address,
                                                         .length = segments[i].length,
                                                         .flags = flags,
                                                         .next = static_cast<uint16_t>(i + 1)});
    }
    const uint16_t index = take_free();
    store(descriptor(index), SplitDescriptor{.address = table.address,
                                             .length = static_cast<uint32_t>(segments.size() * 16),
                                             .flags = kDescriptorIndirect,
                                             .next = 0});
    chains_[index].push_back(index);
    return index;
  }

  // By its first descriptor, those of a chain that is out; what stands in memory may change.
  std::vector<std::vector<uint16_t>> chains_;
  uint16_t available_ = 0;
  uint16_t told_ = 0;
  uint16_t used_ = 0;
};

class PackedDriver final : public Base {
 public:
  explicit PackedDriver(const DriverRingOptions& options)
      : Base(options), entries_(options.size), room_(options.size) {}

  bool add(std::span<const Segment> segments, uint64_t token, const Table* table) override {
    CHECK(!segments.empty(), "a chain has a descriptor");
    const size_t count = table != nullptr ? 1 : segments.size();
    if (room_ < count || free_.empty()) return false;
    const uint16_t id = take_free();
    tokens_[id] = token;
    entries_[id] = static_cast<uint16_t>(count);
    room_ -= count;
    ++outstanding_;
    if (table != nullptr) {
      add_table(segments, *table, id);
    } else {
      add_chain(segments, id);
    }
    return true;
  }
  bool wants_kick() override {
    env::shared_fence();
    const PackedPlace before = std::exchange(told_, next_);
    const auto flags = env::load_shared<uint16_t>(device_ + kEventFlags);
    if (flags == kEventDisable) return false;
    if (flags != kEventAtOffset) return true;
    const auto event = env::load_shared<uint16_t>(device_ + kEventOffset);
    const int32_t size = options_.size;
    const bool event_wrap = (event & kWrapBit) != 0;
    const int32_t wanted = (event & ~kWrapBit) - (event_wrap == next_.wrap ? 0 : size);
    const int32_t from = before.offset - (before.wrap == next_.wrap ? 0 : size);
    return wanted >= from && wanted < next_.offset;
  }
  std::optional<Done> take() override {
    if (is_broken_ || !is_used()) return std::nullopt;
    const auto each = load<PackedDescriptor>(descriptor(used_.offset));
    if (each.id >= options_.size || entries_[each.id] == 0) {
      is_broken_ = true;
      return std::nullopt;
    }
    const uint16_t entries = std::exchange(entries_[each.id], uint16_t{0});
    used_.advance(entries, options_.size);
    room_ += entries;
    free_.push_back(each.id);
    --outstanding_;
    return Done{.token = tokens_[each.id], .written = each.length};
  }
  bool want_call() override {
    if (options_.has_event_index) {
      env::store_shared<uint16_t>(driver_ + kEventOffset,
                                  used_.offset | (used_.wrap ? kWrapBit : 0));
      env::store_shared(driver_ + kEventFlags, kEventAtOffset);
    }
    env::shared_fence();
    return is_used();
  }

 private:
  bool is_used() const {
    const auto flags = env::load_shared<uint16_t>(descriptor(used_.offset).data() + 14);
    const bool available = (flags & kDescriptorAvailable) != 0;
    const bool used = (flags & kDescriptorUsed) != 0;
    return available == used && used == used_.wrap;
  }
  uint16_t available_flags(PackedPlace place) const {
    return place.wrap ? kDescriptorAvailable : kDescriptorUsed;
  }
  // The flags of the first are written last: then all of it is there.
  void add_chain(std::span<const Segment> segments, uint16_t id) {
    const PackedPlace first = next_;
    uint16_t first_flags = 0;
    for (size_t i = 0; i < segments.size(); ++i) {
      const bool is_last = i + 1 == segments.size();
      const uint16_t flags = write_flag(segments[i]) | (is_last ? uint16_t{0} : kDescriptorNext) |
                             available_flags(next_);
      write_body(next_.offset, segments[i].address, segments[i].length, id);
      if (i == 0) {
        first_flags = flags;
      } else {
        env::store_shared(descriptor(next_.offset).data() + 14, flags);
      }
      next_.advance(1, options_.size);
    }
    env::store_shared(descriptor(first.offset).data() + 14, first_flags);
  }
  void add_table(std::span<const Segment> segments, const Table& table, uint16_t id) {
    for (size_t i = 0; i < segments.size(); ++i) {
      store(table.bytes.subspan(i * 16), PackedDescriptor{.address = segments[i].address,
                                                          .length = segments[i].length,
                                                          .id = 0,
                                                          .flags = write_flag(segments[i])});
    }
    write_body(next_.offset, table.address, static_cast<uint32_t>(segments.size() * 16), id);
    const uint16_t flags = kDescriptorIndirect | available_flags(next_);
    env::store_shared(descriptor(next_.offset).data() + 14, flags);
    next_.advance(1, options_.size);
  }
  void write_body(uint16_t offset, uint64_t address, uint32_t length, uint16_t id) {
    const MutableBytes to = descriptor(offset);
    store(to, address);
    store(to.subspan(8), length);
    store(to.subspan(12), id);
  }

  PackedPlace next_;
  PackedPlace told_;
  PackedPlace used_;
  std::vector<uint16_t> entries_;  // by id
  size_t room_;                    // in the ring
};

}  // namespace

size_t DriverRing::room(uint16_t size, bool is_packed) {
  const size_t device = is_packed ? kEventSize : used_size(size);
  return descriptors_room(size) + driver_room(size, is_packed) + align_up(device, kPart);
}

std::unique_ptr<DriverRing> DriverRing::make(const DriverRingOptions& options) {
  CHECK(options.memory.size() >= room(options.size, options.is_packed), "the parts have room");
  if (options.is_packed) return std::make_unique<PackedDriver>(options);
  return std::make_unique<SplitDriver>(options);
}

}  // namespace cairn::door::vhost_user
