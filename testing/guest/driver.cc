// SPDX-License-Identifier: Apache-2.0
#include "testing/guest/driver.h"

#include <algorithm>
#include <array>
#include <optional>

#include "nvme/format/feature_format.h"
#include "nvme/format/identify_format.h"
#include "task/deadline.h"

namespace cairn::door::vfio_user {

namespace {

constexpr uint64_t kPage = nvme::kPageSizeMin;
constexpr auto kConfiguration = static_cast<uint32_t>(nvme::PropertyOffset::kConfiguration);
constexpr auto kStatus = static_cast<uint32_t>(nvme::PropertyOffset::kStatus);
constexpr uint32_t kReady = 1;
constexpr uint32_t kFatal = 2;
constexpr uint32_t kShutdownMask = 3 << 2;
constexpr uint32_t kShutdownDone = 2 << 2;

nvme::Sqe entry_of(nvme::AdminOpcode opcode) {
  nvme::Sqe sqe;
  sqe.opcode = static_cast<uint8_t>(opcode);
  return sqe;
}

}  // namespace

Driver::Driver(env::Env& env, DriverAccess& access, const DriverMemory& memory,
               const DriverOptions& options)
    : env_(env), access_(access), memory_(memory), options_(options) {}

uint64_t Driver::queue_bytes(uint16_t entries) const {
  return align_up(entries * sizeof(nvme::Sqe), kPage) +
         align_up(entries * sizeof(nvme::Cqe), kPage);
}

uint64_t Driver::own_bytes() const {
  return 3 * kPage + queue_bytes(options_.admin_entries) +
         options_.queues * queue_bytes(options_.entries);
}

DriverMemory Driver::data() const {
  return memory_.part(own_bytes(), memory_.bytes.size() - own_bytes());
}

void Driver::place_queues() {
  doorbells_ = {
      .page = access_.doorbells(),
      .shadow = {},
      .events = {},
      .send = [this](Doorbell doorbell, uint32_t value) { access_.ring(doorbell, value); }};
  page_ = memory_.part(0, kPage);
  shadow_ = memory_.part(kPage, 2 * kPage);
  std::ranges::fill(shadow_.bytes, std::byte{0});
  uint64_t at = 3 * kPage;
  queues_.clear();
  for (uint16_t id = 0; id <= options_.queues; ++id) {
    const uint16_t entries = id == 0 ? options_.admin_entries : options_.entries;
    const uint64_t submission = align_up(entries * sizeof(nvme::Sqe), kPage);
    const uint64_t completion = align_up(entries * sizeof(nvme::Cqe), kPage);
    queues_.push_back(std::make_unique<DriverQueue>(
        DriverQueue::Rings{.id = id,
                           .entries = entries,
                           .submission = memory_.part(at, submission),
                           .completion = memory_.part(at + submission, completion)},
        doorbells_));
    at += submission + completion;
  }
}

task::Task<Result<uint32_t>> Driver::read32(uint64_t offset) {
  std::array<std::byte, 4> bytes{};
  Result<void> read = co_await access_.read(offset, bytes);
  if (!read) co_return fail(read.error());
  co_return load<uint32_t>(bytes);
}

task::Task<Result<void>> Driver::write32(uint64_t offset, uint32_t value) {
  std::array<std::byte, 4> bytes;
  store(bytes, value);
  Result<void> written = co_await access_.write(offset, bytes);
  co_return written;
}

task::Task<Result<void>> Driver::write64(uint64_t offset, uint64_t value) {
  std::array<std::byte, 8> bytes;
  store(bytes, value);
  Result<void> written = co_await access_.write(offset, bytes);
  co_return written;
}

task::Task<Result<void>> Driver::wait_status(uint32_t mask, uint32_t value) {
  const Time until = env_.now() + options_.step_timeout;
  for (;;) {
    const Result<uint32_t> status = co_await read32(kStatus);
    if (!status) co_return fail(status.error());
    if ((*status & mask) == value) co_return Result<void>{};
    if ((*status & kFatal) != 0 && (mask & kFatal) == 0 && value != 0) {
      co_return fail(Errc::kIo, "the controller has failed (CSTS.CFS)");
    }
    if (env_.now() >= until) co_return fail(Errc::kTimedOut, "CSTS does not change");
    const Result<void> slept = co_await task::sleep_for(env_, options_.look_every);
    if (!slept) co_return fail(slept.error());
  }
}

uint32_t Driver::configuration() const {
  return nvme::Configuration{.enable = true,
                             .page_size = options_.page_size,
                             .submission_entry_size = 6,
                             .completion_entry_size = 4}
      .encode();
}

task::Task<Result<void>> Driver::disable() {
  Result<void> done = co_await write32(kConfiguration, 0);
  if (!done) co_return done;
  queues_.clear();
  done = co_await wait_status(kReady | kFatal, 0);
  co_return done;
}

task::Task<Result<void>> Driver::start() {
  Result<void> done = co_await disable();
  if (!done) co_return done;
  place_queues();
  const auto zero_based = static_cast<uint16_t>(options_.admin_entries - 1);
  const nvme::AdminQueueSizes sizes{.submission = zero_based, .completion = zero_based};
  done = co_await write32(nvme::PciRegister::kAdminQueues, sizes.encode());
  if (!done) co_return done;
  done = co_await write64(nvme::PciRegister::kAdminSubmission,
                          admin_queue().rings().submission.address);
  if (!done) co_return done;
  done = co_await write64(nvme::PciRegister::kAdminCompletion,
                          admin_queue().rings().completion.address);
  if (!done) co_return done;
  done = co_await write32(kConfiguration, configuration());
  if (!done) co_return done;
  done = co_await wait_status(kReady, kReady);
  if (!done) co_return done;
  done = co_await identify();
  for (uint16_t number = 1; done && number <= options_.queues; ++number) {
    done = co_await make_queue(number);
  }
  co_return done;
}

task::Task<Result<void>> Driver::must(nvme::Sqe sqe) {
  const Result<nvme::Cqe> cqe = co_await admin(sqe);
  if (!cqe) co_return fail(cqe.error());
  if (cqe->get_status().ok()) co_return Result<void>{};
  co_return fail(Errc::kInvalid, "an admin command failed",
                 static_cast<int32_t>(cqe->get_status().code()));
}

task::Task<Result<void>> Driver::identify() {
  nvme::Sqe sqe = entry_of(nvme::AdminOpcode::kIdentify);
  nvme::IdentifyFields{.cns = nvme::Cns::kController}.encode(sqe);
  point(sqe, page_.address, kPage, {});
  Result<void> done = co_await must(sqe);
  if (!done) co_return done;
  identity_ = load<nvme::IdentifyController>(page_.bytes);
  if (options_.queues > 0) {
    sqe = entry_of(nvme::AdminOpcode::kSetFeatures);
    const auto wanted = static_cast<uint16_t>(options_.queues - 1);
    nvme::SetFeaturesFields{
        .feature = nvme::Feature::kNumberOfQueues,
        .value = nvme::NumberOfQueues{.submission = wanted, .completion = wanted}.encode()}
        .encode(sqe);
    done = co_await must(sqe);
    if (!done) co_return done;
  }
  if (!options_.shadow) co_return done;
  if ((identity_.admin_commands & nvme::Oacs::kDoorbellBuffers) == 0) {
    co_return fail(Errc::kUnsupported, "the controller has no shadow doorbells (OACS bit 8)");
  }
  sqe = entry_of(nvme::AdminOpcode::kDoorbellBufferConfig);
  nvme::DoorbellBuffers{.doorbells = shadow_.address, .event_indexes = shadow_.address + kPage}
      .encode(sqe);
  done = co_await must(sqe);
  if (!done) co_return done;
  doorbells_.shadow = shadow_.bytes.first(kPage);
  doorbells_.events = shadow_.bytes.subspan(kPage);
  co_return done;
}

task::Task<Result<void>> Driver::make_queue(uint16_t number) {
  const DriverQueue::Rings& rings = queue(number).rings();
  const auto size = static_cast<uint16_t>(rings.entries - 1);
  nvme::Sqe sqe = entry_of(nvme::AdminOpcode::kCreateCompletionQueue);
  nvme::CompletionQueueFields{.id = number,
                              .size = size,
                              .vector = options_.interrupts ? number : uint16_t{0},
                              .interrupts = options_.interrupts,
                              .address = rings.completion.address}
      .encode(sqe);
  Result<void> done = co_await must(sqe);
  if (!done) co_return done;
  sqe = entry_of(nvme::AdminOpcode::kCreateSubmissionQueue);
  nvme::SubmissionQueueFields{
      .id = number, .size = size, .completion = number, .address = rings.submission.address}
      .encode(sqe);
  done = co_await must(sqe);
  co_return done;
}

task::Task<Result<void>> Driver::stop() {
  Result<void> done = co_await write32(kConfiguration, configuration() | 1 << 14);
  if (!done) co_return done;
  done = co_await wait_status(kShutdownMask, kShutdownDone);
  if (!done) co_return done;
  done = co_await disable();
  co_return done;
}

task::Task<Result<nvme::Cqe>> Driver::execute(DriverQueue& queue, nvme::Sqe sqe) {
  sqe.cid = ++next_id_;
  queue.submit(sqe);
  queue.ring();
  const Time until = env_.now() + options_.step_timeout;
  std::optional<nvme::Cqe> found;
  for (;;) {
    queue.poll([&](const nvme::Cqe& cqe) {
      if (cqe.cid == sqe.cid) found = cqe;
    });
    if (found) co_return *found;
    if (env_.now() >= until) co_return fail(Errc::kTimedOut, "a command does not complete");
    const Result<void> slept = co_await task::sleep_for(env_, options_.look_every);
    if (!slept) co_return fail(slept.error());
  }
}

void Driver::point(nvme::Sqe& sqe, uint64_t address, uint64_t bytes, const DriverMemory& list,
                   uint32_t page_size) {
  nvme::PrpPair pair{.first = address, .second = {}};
  const uint64_t first = std::min<uint64_t>(bytes, page_size - address % page_size);
  uint64_t rest = bytes - first;
  uint64_t next = address + first;
  if (rest > page_size) {
    pair.second = list.address;
    for (size_t i = 0; rest > 0; ++i, next += page_size) {
      store(list.bytes.subspan(i * sizeof(uint64_t)), next);
      rest -= std::min<uint64_t>(rest, page_size);
    }
  } else if (rest > 0) {
    pair.second = next;
  }
  pair.encode(sqe);
}

}  // namespace cairn::door::vfio_user
