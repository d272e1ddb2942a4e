// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/driver.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "env/shared_word.h"
#include "task/deadline.h"

namespace cairn::door::vhost_user {

namespace {

constexpr uint64_t kPage = 4096;
// Two regions of the guest's memory: rings low, data above 4 GiB; and where a monitor has them.
constexpr uint64_t kDataAddress = 4ull << 30;
constexpr uint64_t kUserAddress = 0x7f00'0000'0000;
// Of a request: header, status and an indirect table, before its data.
constexpr size_t kTableOffset = 64;
constexpr size_t kDataOffset = 4096;
constexpr size_t kDataPieces = 4;  // segments that the data of a request are cut into, at most

template <class T>
Bytes bytes_of_value(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

}  // namespace

size_t Driver::slot_room() const { return kDataOffset + align_up(options_.request_max, kPage); }

Result<void> Driver::prepare() {
  const size_t rings = DriverRing::room(options_.queue_size, options_.is_packed);
  const size_t slots = options_.depth * slot_room();
  const uint64_t low = align_up(rings, kPage) * options_.queues;
  Result<env::Descriptor> memory = sharing_.make_shared_memory(low + slots * options_.queues);
  if (!memory) return fail(memory.error());
  memory_hold_ = std::move(*memory);
  Result<std::unique_ptr<env::SharedMemory>> mapped =
      sharing_.map_shared(memory_hold_, {.size = low + slots * options_.queues});
  if (!mapped) return fail(mapped.error());
  memory_ = std::move(*mapped);
  for (size_t i = 0; i < options_.queues; ++i) {
    auto queue = std::make_unique<GuestQueue>(options_.depth);
    queue->ring_offset = i * align_up(rings, kPage);
    queue->slots_offset = low + i * slots;
    queue->ring = DriverRing::make({.size = options_.queue_size,
                                    .is_packed = options_.is_packed,
                                    .has_event_index = options_.has_event_index,
                                    .memory = memory_->bytes().subspan(queue->ring_offset, rings),
                                    .address = queue->ring_offset});
    for (auto* hold : {&queue->kick_hold, &queue->call_hold}) {
      Result<env::Descriptor> signal = sharing_.make_signal();
      if (!signal) return fail(signal.error());
      *hold = std::move(*signal);
    }
    Result<std::unique_ptr<env::Signal>> kick = sharing_.open_signal(queue->kick_hold);
    if (!kick) return fail(kick.error());
    Result<std::unique_ptr<env::Signal>> call = sharing_.open_signal(queue->call_hold);
    if (!call) return fail(call.error());
    queue->kick = std::move(*kick);
    queue->call = std::move(*call);
    for (size_t slot = 0; slot < options_.depth; ++slot) {
      queue->slots.push_back(std::make_unique<Slot>());
      queue->free_slots.push_back(slot);
    }
    gate_.spawn(listen(*queue));
    queues_.push_back(std::move(queue));
  }
  return {};
}

// ---- requests

task::Task<void> Driver::listen(GuestQueue& queue) {
  while (!ending_.requested()) {
    do {
      complete(queue);
    } while (queue.ring->want_call() && !queue.ring->is_broken());
    const Result<void> called = co_await queue.call->wait(ending_.token());
    if (!called) co_return;
  }
}

void Driver::complete(GuestQueue& queue) {
  while (const auto done = queue.ring->take()) {
    Slot& slot = *queue.slots[done->token];
    slot.is_out = false;
    slot.done.set();
  }
}

// Header and status have their own segments; the data are cut into some.
void Driver::add(GuestQueue& queue, size_t slot, BlkHeader header, Bytes out, MutableBytes in) {
  const uint64_t offset = queue.slots_offset + slot * slot_room();
  const uint64_t low = queues_.front()->slots_offset;
  const uint64_t address = kDataAddress + (offset - low);
  const MutableBytes room = memory_->bytes().subspan(offset, slot_room());
  store(room, header);
  room[sizeof(header)] = std::byte{0xff};
  std::ranges::copy(out, room.begin() + kDataOffset);
  std::vector<Segment> segments = {
      {.address = address, .length = sizeof(header), .is_writable = false}};
  const size_t size = std::max(out.size(), in.size());
  const size_t piece = std::max(align_up(size / kDataPieces, kSector), kSector);
  for (size_t at = 0; at < size; at += piece) {
    segments.push_back({.address = address + kDataOffset + at,
                        .length = static_cast<uint32_t>(std::min(piece, size - at)),
                        .is_writable = !in.empty()});
  }
  segments.push_back({.address = address + sizeof(header), .length = 1, .is_writable = true});
  const DriverRing::Table table{.bytes = room.subspan(kTableOffset, kDataOffset - kTableOffset),
                                .address = address + kTableOffset};
  queue.slots[slot]->is_out = true;
  queue.slots[slot]->done.reset();
  const bool in_table = options_.has_indirect && slot % 2 == 0;
  const bool added = queue.ring->add(segments, slot, in_table ? &table : nullptr);
  CHECK(added, "a queue has room for all requests at once");
  if (queue.ring->wants_kick()) queue.kick->raise();
}

task::Task<Result<BlkStatus>> Driver::call(BlkType type, uint64_t sector, Bytes out,
                                           MutableBytes in, task::CancelToken token,
                                           size_t queue_index) {
  GuestQueue& queue = *queues_[queue_index];
  const Result<void> got = co_await queue.free.acquire(1, token);
  if (!got) co_return fail(got.error());
  const size_t index = queue.free_slots.back();
  queue.free_slots.pop_back();
  Slot& slot = *queue.slots[index];
  add(queue, index, {.type = static_cast<uint32_t>(type), .reserved = 0, .sector = sector}, out,
      in);
  const Result<void> done = co_await slot.done.wait(token);
  // One that nobody waits for any more keeps its place: the device may still write there.
  if (!done) co_return fail(done.error());
  const bool is_known = !slot.is_out;
  const MutableBytes room =
      memory_->bytes().subspan(queue.slots_offset + index * slot_room(), slot_room());
  const auto status = static_cast<BlkStatus>(room[sizeof(BlkHeader)]);
  std::ranges::copy(room.subspan(kDataOffset, in.size()), in.begin());
  queue.free_slots.push_back(index);
  queue.free.release();
  if (!is_known) co_return fail(Errc::kClosed, "the driver has ended");
  co_return status;
}

task::Task<Result<BlkStatus>> Driver::read(uint64_t sector, MutableBytes into,
                                           task::CancelToken token, size_t queue) {
  return call(BlkType::kIn, sector, {}, into, token, queue);
}
task::Task<Result<BlkStatus>> Driver::write(uint64_t sector, Bytes from, task::CancelToken token,
                                            size_t queue) {
  return call(BlkType::kOut, sector, from, {}, token, queue);
}

// ---- messages

task::Task<Result<BlkConfig>> Driver::read_config(task::CancelToken token) {
  std::array<std::byte, sizeof(ConfigHeader) + sizeof(BlkConfig)> payload{};
  store(payload, ConfigHeader{.offset = 0, .size = sizeof(BlkConfig), .flags = 0});
  const Result<void> sent = co_await messages_.write(Request::kGetConfig, 0, payload, {}, token);
  if (!sent) co_return fail(sent.error());
  const Result<std::vector<std::byte>> reply =
      co_await messages_.read(Request::kGetConfig, nullptr, token);
  if (!reply) co_return fail(reply.error());
  if (reply->size() != payload.size())
    co_return fail(Errc::kInvalid, "a configuration of odd size");
  co_return load<BlkConfig>(Bytes(*reply).subspan(sizeof(ConfigHeader)));
}

task::Task<Result<void>> Driver::set_writeback(bool writeback, task::CancelToken token) {
  std::array<std::byte, sizeof(ConfigHeader) + 1> payload{};
  store(payload, ConfigHeader{.offset = offsetof(BlkConfig, writeback), .size = 1, .flags = 0});
  payload.back() = static_cast<std::byte>(writeback ? 1 : 0);
  const Result<uint64_t> answer =
      co_await messages_.send(Request::kSetConfig, payload, nullptr, token);
  if (!answer) co_return fail(answer.error());
  if (*answer != 0) co_return fail(Errc::kInvalid, "the server refused");
  co_return Result<void>{};
}

task::Task<Result<void>> Driver::negotiate(task::CancelToken token) {
  const Result<uint64_t> offered = co_await messages_.ask(Request::kGetFeatures, token);
  if (!offered) co_return fail(offered.error());
  const Result<uint64_t> protocol = co_await messages_.ask(Request::kGetProtocolFeatures, token);
  if (!protocol) co_return fail(protocol.error());
  const uint64_t needed = kProtocolMultiQueue | kProtocolReplyAck | kProtocolConfig |
                          (options_.has_inflight ? kProtocolInflight : 0);
  if ((*protocol & needed) != needed) co_return fail(Errc::kInvalid, "the server lacks features");
  const uint64_t chosen =
      needed | (*protocol & (kProtocolResetDevice | kProtocolMemorySlots | kProtocolBackendReq));
  const Result<void> sent =
      co_await messages_.write(Request::kSetProtocolFeatures, 0, bytes_of_value(chosen), {}, token);
  if (!sent) co_return fail(sent.error());
  const Result<void> owned = co_await messages_.write(Request::kSetOwner, 0, {}, {}, token);
  if (!owned) co_return fail(owned.error());
  const Result<uint64_t> queues = co_await messages_.ask(Request::kGetQueueNum, token);
  if (!queues) co_return fail(queues.error());
  if (*queues < options_.queues) co_return fail(Errc::kInvalid, "the server has too few queues");
  const Result<BlkConfig> config = co_await read_config(token);
  if (!config) co_return fail(config.error());
  config_ = *config;
  features_ = *offered & ~(kRingPacked | kRingEventIndex | kRingIndirect | kLogAll);
  if (options_.is_packed) features_ |= *offered & kRingPacked;
  if (options_.has_event_index) features_ |= *offered & kRingEventIndex;
  if (options_.has_indirect) features_ |= *offered & kRingIndirect;
  const Result<uint64_t> set = co_await messages_.tell(Request::kSetFeatures, features_, token);
  if (!set) co_return fail(set.error());
  co_return Result<void>{};
}

task::Task<Result<void>> Driver::share_memory(task::CancelToken token) {
  const uint64_t low = queues_.front()->slots_offset;
  const uint64_t all = memory_->bytes().size();
  std::array<std::byte, 8 + 2 * sizeof(MemoryRegion)> table{};
  store(table, uint32_t{2});
  store(MutableBytes(table).subspan(8),
        MemoryRegion{
            .guest_address = 0, .size = low, .user_address = kUserAddress, .mmap_offset = 0});
  store(MutableBytes(table).subspan(8 + sizeof(MemoryRegion)),
        MemoryRegion{.guest_address = kDataAddress,
                     .size = all - low,
                     .user_address = kUserAddress + low,
                     .mmap_offset = low});
  const env::Descriptor* const holds[] = {&memory_hold_, &memory_hold_};
  const Result<void> sent =
      co_await messages_.write(Request::kSetMemTable, kNeedReply, table, holds, token);
  if (!sent) co_return fail(sent.error());
  const Result<std::vector<std::byte>> reply =
      co_await messages_.read(Request::kSetMemTable, nullptr, token);
  if (!reply) co_return fail(reply.error());
  if (reply->size() != 8 || load<uint64_t>(*reply) != 0) {
    co_return fail(Errc::kInvalid, "the server refused our memory");
  }
  co_return Result<void>{};
}

task::Task<Result<void>> Driver::share_inflight(task::CancelToken token) {
  if (!options_.has_inflight) co_return Result<void>{};
  if (!inflight_hold_.is_valid()) {
    const InflightArea wanted{.mmap_size = 0,
                              .mmap_offset = 0,
                              .queues = static_cast<uint16_t>(options_.queues),
                              .queue_size = options_.queue_size,
                              .padding = 0};
    const Result<void> sent =
        co_await messages_.write(Request::kGetInflightFd, 0, bytes_of_value(wanted), {}, token);
    if (!sent) co_return fail(sent.error());
    const Result<std::vector<std::byte>> reply =
        co_await messages_.read(Request::kGetInflightFd, &inflight_hold_, token);
    if (!reply) co_return fail(reply.error());
    if (reply->size() != sizeof(InflightArea) || !inflight_hold_.is_valid()) {
      co_return fail(Errc::kInvalid, "the server gave no buffer for what is in flight");
    }
    inflight_ = load<InflightArea>(*reply);
  }
  const Result<uint64_t> set = co_await messages_.send(
      Request::kSetInflightFd, bytes_of_value(inflight_), &inflight_hold_, token);
  if (!set) co_return fail(set.error());
  if (*set != 0) co_return fail(Errc::kInvalid, "the server refused its own buffer");
  co_return Result<void>{};
}

// As QEMU does: what the base is after a server has died, only its notes know; in a split virtqueue
// the used ring says as much, and one that was stopped told it.
task::Task<Result<void>> Driver::start_queue(size_t index, task::CancelToken token) {
  GuestQueue& queue = *queues_[index];
  const DriverRingPlace& place = queue.ring->place();
  const auto number = static_cast<uint32_t>(index);
  const uint32_t used = env::load_shared<uint16_t>(memory_->bytes().data() + place.device + 2);
  const uint32_t first = options_.is_packed ? kWrapBit | uint32_t{kWrapBit} << 16 : used;
  const uint32_t base = options_.is_packed ? queue.base.value_or(first) : first;
  const VringState size{.index = number, .num = options_.queue_size};
  const VringState begin{.index = number, .num = base};
  const VringState enable{.index = number, .num = 1};
  const VringAddress address{.index = number,
                             .flags = 0,
                             .descriptors = kUserAddress + place.descriptors,
                             .used = kUserAddress + place.device,
                             .available = kUserAddress + place.driver,
                             .log = 0};
  const uint64_t signal = number;
  struct Step {
    Request request;
    Bytes payload;
    const env::Descriptor* descriptor;
  };
  const std::array<Step, 6> steps = {{
      {Request::kSetVringNum, bytes_of_value(size), nullptr},
      {Request::kSetVringBase, bytes_of_value(begin), nullptr},
      {Request::kSetVringAddr, bytes_of_value(address), nullptr},
      {Request::kSetVringCall, bytes_of_value(signal), &queue.call_hold},
      {Request::kSetVringKick, bytes_of_value(signal), &queue.kick_hold},
      {Request::kSetVringEnable, bytes_of_value(enable), nullptr},
  }};
  for (const Step& step : steps) {
    const Result<uint64_t> answer =
        co_await messages_.send(step.request, step.payload, step.descriptor, token);
    if (!answer) co_return fail(answer.error());
    if (*answer != 0) co_return fail(Errc::kInvalid, "the server refused a virtqueue");
  }
  co_return Result<void>{};
}

// ---- its life

task::Task<Result<void>> Driver::connect(env::Address at, task::CancelToken token) {
  hang_up();
  Result<env::Connection> connection = co_await env_.connect(std::move(at), token);
  if (!connection) co_return fail(connection.error());
  Result<std::unique_ptr<env::LocalStream>> stream = sharing_.open_local(std::move(*connection));
  if (!stream) co_return fail(stream.error());
  messages_.begin(std::move(*stream));
  Result<void> done = co_await negotiate(token);
  if (done) done = co_await share_inflight(token);
  if (done) done = co_await share_memory(token);
  for (size_t i = 0; i < queues_.size() && done; ++i) done = co_await start_queue(i, token);
  if (!done) hang_up();
  co_return done;
}

task::Task<void> Driver::until_gone(task::CancelToken token) {
  std::array<std::byte, 64> room{};
  while (messages_.stream() != nullptr) {
    const Result<env::Received> got = co_await messages_.stream()->read(room, {}, token);
    if (!got || got->bytes == 0) co_return;
  }
}

void Driver::hang_up() { messages_.end(); }

task::Task<Result<void>> Driver::leave(task::CancelToken token) {
  for (uint32_t i = 0; i < queues_.size(); ++i) {
    const VringState state{.index = i, .num = 0};
    const Result<void> sent =
        co_await messages_.write(Request::kGetVringBase, 0, bytes_of_value(state), {}, token);
    if (!sent) co_return fail(sent.error());
    const Result<std::vector<std::byte>> base =
        co_await messages_.read(Request::kGetVringBase, nullptr, token);
    if (!base) co_return fail(base.error());
    if (base->size() < sizeof(VringState)) co_return fail(Errc::kInvalid, "a base of a virtqueue");
    queues_[i]->base = load<VringState>(*base).num;
  }
  hang_up();
  co_return Result<void>{};
}

task::Task<void> Driver::close() {
  if (std::exchange(has_ended_, true)) co_return;
  hang_up();
  ending_.request();
  for (const auto& queue : queues_) {
    for (const auto& slot : queue->slots) slot->done.set();
  }
  co_await gate_.close();
}

}  // namespace cairn::door::vhost_user
