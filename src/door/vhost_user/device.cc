// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/device.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "door/vhost_user/inflight_format.h"

namespace cairn::door::vhost_user {

namespace {

constexpr uint64_t kRingFeatures =
    kLogAll | kRingIndirect | kRingEventIndex | kProtocolFeatures | kVersion1 | kRingPacked;
constexpr uint64_t kPage = 4096;

}  // namespace

Device::Device(env::Env& env, env::Sharing& sharing, BlkDisk& disk, const DeviceOptions& options)
    : env_(env),
      sharing_(sharing),
      disk_(disk),
      options_(options),
      memory_(sharing),
      losses_(disk.exported().drive(), disk.opening()) {
  choose_durable();
}

uint64_t Device::features() const { return disk_.features() | kRingFeatures; }

Result<void> Device::set_features(uint64_t features) {
  if ((features & ~this->features()) != 0) {
    return fail(Errc::kInvalid, "features that were not offered");
  }
  features_ = features;
  log_.enable((features & kLogAll) != 0);
  choose_durable();
  // Who does not know of enabling has them enabled.
  if ((features & kProtocolFeatures) == 0) {
    for (Vring& each : vrings_) each.is_enabled = true;
  }
  return {};
}

// A driver that cannot flush, or has turned the cache off, takes what completes for durable.
void Device::choose_durable() {
  const bool can_flush = (features_ & kBlkFlush) != 0;
  const bool may_choose = (features_ & kBlkConfigWriteback) != 0;
  durable_ = !can_flush || (may_choose && !writeback_);
}

Result<void> Device::set_config(const Config& config) {
  constexpr size_t kOffset = offsetof(BlkConfig, writeback);
  if (config.header.offset != kOffset || config.header.size != 1) {
    return fail(Errc::kInvalid, "a part of the configuration that cannot be changed",
                static_cast<int32_t>(config.header.offset));
  }
  writeback_ = config.bytes[0] != std::byte{0};
  losses_.set_through(!writeback_);
  choose_durable();
  return {};
}

task::Task<Result<void>> Device::set_status(uint64_t status) {
  if (status == 0) co_await reset();
  status_ = status & 0xff;
  co_return Result<void>{};
}

// ---- memory

task::Task<void> Device::pause() {
  for (Vring& each : vrings_) {
    if (each.queue != nullptr) co_await stop(each);
  }
}

Result<void> Device::go_on() {
  Result<void> done;
  for (size_t i = 0; i < vrings_.size(); ++i) {
    const Result<void> started = start_if_ready(i);
    if (!started) done = started;
  }
  return done;
}

task::Task<Result<void>> Device::set_memory(MemoryTable table,
                                            std::span<env::Descriptor> descriptors) {
  co_await pause();
  co_await memory_.clear();
  for (size_t i = 0; i < table.count; ++i) {
    const Result<void> added = memory_.add(table.regions[i], descriptors[i]);
    if (!added) co_return added;
  }
  co_return go_on();
}

Result<void> Device::add_memory(const MemoryRegion& region, const env::Descriptor& descriptor) {
  const Result<void> added = memory_.add(region, descriptor);
  if (!added) return added;
  return go_on();
}

task::Task<Result<void>> Device::remove_memory(MemoryRegion region) {
  co_await pause();
  const Result<void> removed = co_await memory_.remove(region);
  // A virtqueue that lay there rests until its front end says where it is now.
  for (Vring& each : vrings_) {
    if (each.has_address && !memory_.guest_address(each.address.descriptors)) {
      each.has_address = false;
    }
  }
  const Result<void> gone_on = go_on();
  co_return removed ? gone_on : removed;
}

Result<void> Device::set_log(const LogArea& area, const env::Descriptor& descriptor) {
  Result<std::unique_ptr<env::SharedMemory>> memory =
      sharing_.map_shared(descriptor, {.offset = area.offset, .size = area.size, .writable = true});
  if (!memory) return fail(memory.error());
  log_.set(std::move(*memory));
  return {};
}

// ---- what is in flight

Result<Device::Inflight> Device::make_inflight(const InflightArea& wanted) {
  if (wanted.queues == 0 || wanted.queues > kQueuesMax || wanted.queue_size == 0 ||
      wanted.queue_size > kQueueSizeMax) {
    return fail(Errc::kInvalid, "virtqueues in flight, of which there are none or too many");
  }
  const bool is_packed = (features_ & kRingPacked) != 0;
  const size_t size = wanted.queues * inflight_region_size(wanted.queue_size, is_packed);
  InflightArea area = wanted;
  area.mmap_size = align_up(size + sizeof(LossRecord), kPage);
  area.mmap_offset = 0;
  Result<env::Descriptor> memory = sharing_.make_shared_memory(area.mmap_size);
  if (!memory) return fail(memory.error());
  return Inflight{.memory = std::move(*memory), .area = area};
}

Result<void> Device::set_inflight(const InflightArea& area, const env::Descriptor& descriptor) {
  const bool is_packed = (features_ & kRingPacked) != 0;
  const uint64_t needed = uint64_t{area.queues} * inflight_region_size(area.queue_size, is_packed);
  if (area.queues == 0 || area.queues > kQueuesMax || area.queue_size == 0 ||
      area.mmap_size < needed) {
    return fail(Errc::kInvalid, "a buffer for what is in flight that is too small for its queues");
  }
  for (const Vring& each : vrings_) {
    if (each.queue != nullptr) return fail(Errc::kInvalid, "what is in flight, while a queue runs");
  }
  Result<std::unique_ptr<env::SharedMemory>> memory = sharing_.map_shared(
      descriptor, {.offset = area.mmap_offset, .size = area.mmap_size, .writable = true});
  if (!memory) return fail(memory.error());
  losses_.detach();
  inflight_ = std::move(*memory);
  inflight_area_ = area;
  note_losses();
  return {};
}

// In a buffer that another back end made there may be no room.
void Device::note_losses() {
  const bool is_packed = (features_ & kRingPacked) != 0;
  const uint64_t regions =
      inflight_area_.queues * inflight_region_size(inflight_area_.queue_size, is_packed);
  const MutableBytes bytes = inflight_->bytes();
  const bool is_aligned_there = is_aligned(inflight_area_.mmap_offset, kInflightAlignment) &&
                                is_aligned(bytes.size(), kInflightAlignment);
  if (!is_aligned_there || bytes.size() < regions + sizeof(LossRecord)) return;
  const bool is_lost = losses_.attach(bytes.last(sizeof(LossRecord)));
  if (losses_.is_through()) {
    writeback_ = false;
    choose_durable();
  } else if (!writeback_) {
    losses_.set_through(true);
  }
  if (!is_lost || !options_.door.log) return;
  options_.door.log("the guest of " + disk_.exported().options().name +
                    " may have lost writes with a server that was killed before they were flushed: "
                    "its next flush fails, once");
}

// ---- virtqueues

Result<Vring*> Device::vring(uint32_t index) {
  if (index >= vrings_.size()) {
    return fail(Errc::kInvalid, "a virtqueue that there is not", static_cast<int32_t>(index));
  }
  return &vrings_[index];
}

Result<std::unique_ptr<env::Signal>> Device::open(const VringSignal& signal,
                                                  const env::Descriptor& descriptor) {
  if (!signal.has_signal) return std::unique_ptr<env::Signal>();
  return sharing_.open_signal(descriptor);
}

Result<void> Device::set_size(const VringState& state) {
  const Result<Vring*> found = vring(state.index);
  if (!found) return fail(found.error());
  if ((*found)->queue != nullptr) return fail(Errc::kInvalid, "the size of a queue that runs");
  if (state.num == 0 || state.num > kQueueSizeMax) {
    return fail(Errc::kInvalid, "a virtqueue of 1 to 32768 descriptors",
                static_cast<int32_t>(state.num));
  }
  (*found)->size = static_cast<uint16_t>(state.num);
  return start_if_ready(state.index);
}

Result<void> Device::set_base(const VringState& state) {
  const Result<Vring*> found = vring(state.index);
  if (!found) return fail(found.error());
  if ((*found)->queue != nullptr) return fail(Errc::kInvalid, "the base of a queue that runs");
  (*found)->base = {.available = static_cast<uint16_t>(state.num),
                    .used = static_cast<uint16_t>(state.num >> 16)};
  return {};
}

Result<void> Device::set_address(const VringAddress& address) {
  const Result<Vring*> found = vring(address.index);
  if (!found) return fail(found.error());
  // While it runs, a front end that moves the guest away only turns logging on or off.
  if (Queue* queue = (*found)->queue.get()) {
    const VringAddress& now = (*found)->address;
    if (now.descriptors != address.descriptors || now.used != address.used ||
        now.available != address.available) {
      return fail(Errc::kInvalid, "the address of a queue that runs");
    }
    queue->ring().set_log((address.flags & kVringLog) != 0 ? &log_ : nullptr, address.log);
  }
  (*found)->address = address;
  (*found)->has_address = true;
  return start_if_ready(address.index);
}

task::Task<Result<void>> Device::set_enabled(VringState state) {
  const Result<Vring*> found = vring(state.index);
  if (!found) co_return fail(found.error());
  (*found)->is_enabled = state.num != 0;
  if (!(*found)->is_enabled && (*found)->queue != nullptr) co_await stop(**found);
  co_return start_if_ready(state.index);
}

task::Task<Result<void>> Device::set_kick(VringSignal signal, const env::Descriptor& descriptor) {
  const Result<Vring*> found = vring(signal.index);
  if (!found) co_return fail(found.error());
  Result<std::unique_ptr<env::Signal>> kick = open(signal, descriptor);
  if (!kick) co_return fail(kick.error());
  if ((*found)->queue != nullptr) co_await stop(**found);
  (*found)->signals.kick = std::move(*kick);
  (*found)->has_kick = true;
  co_return start_if_ready(signal.index);
}

Result<void> Device::set_call(const VringSignal& signal, const env::Descriptor& descriptor) {
  const Result<Vring*> found = vring(signal.index);
  if (!found) return fail(found.error());
  Result<std::unique_ptr<env::Signal>> call = open(signal, descriptor);
  if (!call) return fail(call.error());
  (*found)->signals.call = std::move(*call);
  if ((*found)->queue != nullptr) (*found)->queue->call_changed();
  return {};
}

Result<void> Device::set_error(const VringSignal& signal, const env::Descriptor& descriptor) {
  const Result<Vring*> found = vring(signal.index);
  if (!found) return fail(found.error());
  Result<std::unique_ptr<env::Signal>> error = open(signal, descriptor);
  if (!error) return fail(error.error());
  (*found)->signals.error = std::move(*error);
  return {};
}

task::Task<Result<VringState>> Device::stop_vring(VringState state) {
  const Result<Vring*> found = vring(state.index);
  if (!found) co_return fail(found.error());
  Vring& stopped = **found;
  if (stopped.queue != nullptr) {
    Queue& queue = *stopped.queue;
    co_await queue.stop();
    stopped.base = queue.ring().base();
    if (!is_abandoned_) queue.ring().forget_inflight();
    stopped.queue.reset();
  }
  stopped.has_kick = false;
  stopped.signals.kick.reset();
  const bool is_packed = (features_ & kRingPacked) != 0;
  const uint32_t used = is_packed ? uint32_t{stopped.base.used} << 16 : 0;
  co_return VringState{.index = state.index, .num = stopped.base.available | used};
}

Result<RingOptions> Device::ring_options(size_t index) {
  const Vring& vring = vrings_[index];
  const auto descriptors = memory_.guest_address(vring.address.descriptors);
  const auto driver = memory_.guest_address(vring.address.available);
  const auto device = memory_.guest_address(vring.address.used);
  if (!descriptors || !driver || !device) {
    return fail(Errc::kInvalid, "a virtqueue outside the memory that is shared");
  }
  RingOptions options{.size = vring.size,
                      .descriptors = *descriptors,
                      .driver = *driver,
                      .device = *device,
                      .is_packed = (features_ & kRingPacked) != 0,
                      .has_event_index = (features_ & kRingEventIndex) != 0,
                      .has_indirect = (features_ & kRingIndirect) != 0,
                      .base = vring.base,
                      .inflight = {},
                      .used_log_address = vring.address.log,
                      .log = (vring.address.flags & kVringLog) != 0 ? &log_ : nullptr};
  if (inflight_ != nullptr && index < inflight_area_.queues) {
    if (vring.size != inflight_area_.queue_size) {
      return fail(Errc::kInvalid, "a virtqueue of another size than what is in flight");
    }
    const size_t region = inflight_region_size(vring.size, options.is_packed);
    // The front end may have changed its mind about the layout since it sent the buffer.
    if (inflight_->bytes().size() < (index + 1) * region) {
      return fail(Errc::kInvalid, "a buffer for what is in flight that is too small");
    }
    options.inflight = inflight_->bytes().subspan(index * region, region);
  }
  return options;
}

Result<void> Device::start_if_ready(size_t index) {
  Vring& vring = vrings_[index];
  if (vring.queue != nullptr || !vring.is_ready() || is_abandoned_) return {};
  const Result<RingOptions> options = ring_options(index);
  if (!options) return fail(options.error());
  Result<std::unique_ptr<Ring>> ring = Ring::make(*options, memory_.guest());
  if (!ring) return fail(ring.error());
  const QueueParts parts{.env = env_,
                         .sharing = sharing_,
                         .disk = disk_,
                         .memory = memory_.guest(),
                         .log = log_,
                         .losses = losses_,
                         .options = options_};
  vring.queue = std::make_unique<Queue>(parts, std::move(*ring), vring.signals, durable_);
  vring.queue->start();
  return {};
}

task::Task<void> Device::stop(Vring& vring) {
  co_await vring.queue->stop();
  vring.base = vring.queue->ring().base();
  vring.queue.reset();
}

task::Task<void> Device::disable() {
  co_await pause();
  for (Vring& each : vrings_) each.is_enabled = false;
}

task::Task<void> Device::reset() {
  co_await pause();
  for (Vring& each : vrings_) each = Vring{};
  losses_.detach();
  inflight_.reset();
  inflight_area_ = {};
  features_ = status_ = 0;
  writeback_ = true;
  log_.enable(false);
  choose_durable();
}

task::Task<void> Device::stop() {
  co_await pause();
  co_await flush_unflushed();
  co_await memory_.clear();
}

task::Task<void> Device::flush_unflushed() {
  if (inflight_ == nullptr || is_abandoned_ || !losses_.has_unflushed()) co_return;
  const LossNote::Mark mark = losses_.mark();
  const Result<void> done = co_await disk_.exported().drive().flush(abandoned_.token());
  if (!abandoned_.requested()) losses_.flushed_unasked(mark, done);
}

void Device::abandon() {
  is_abandoned_ = true;
  abandoned_.request();
  for (Vring& each : vrings_) {
    if (each.queue != nullptr) each.queue->abandon();
  }
}

}  // namespace cairn::door::vhost_user
