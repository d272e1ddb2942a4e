// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "task/deadline.h"
#include "task/gate.h"

namespace cairn::door::vfio_user {

Session::Session(env::Env& env, env::Sharing& sharing, Glances& glances,
                 const SessionOptions& options)
    : env_(env), sharing_(sharing), glances_(glances), options_(options) {}

Session::~Session() = default;

void Session::say(std::string_view text) const {
  if (options_.log) options_.log(text);
}

OutgoingMessage Session::reply_to(const Header& command, Result<void> outcome, Reply reply) {
  OutgoingMessage message;
  message.header = {
      .id = command.id, .command = command.command, .size = {}, .flags = kTypeReply, .error = {}};
  if (!outcome) {
    message.header.flags = kTypeReply | kError;
    message.header.error = errno_of(outcome.error());
    return message;
  }
  message.payload = std::move(reply.payload);
  message.descriptors = std::move(reply.descriptors);
  return message;
}

Result<void> Session::make_doorbells() {
  // The descriptor has all of BAR0, so that offsets in it are those of the region.
  Result<env::Descriptor> bar0 = sharing_.make_shared_memory(kBar0Size);
  if (!bar0) return fail(bar0.error());
  Result<std::unique_ptr<env::SharedMemory>> page =
      sharing_.map_shared(*bar0, {.offset = kDoorbellsAt, .size = kDoorbellsSize});
  if (!page) return fail(page.error());
  bar0_ = std::move(*bar0);
  doorbells_ = std::move(*page);
  return {};
}

task::Task<Result<void>> Session::make_device(const DeviceMaker& maker) {
  const Result<void> made = make_doorbells();
  if (!made) co_return made;
  DeviceParts parts{.env = env_,
                    .memory = memory_,
                    .doorbells = doorbells_->bytes(),
                    .is_told = options_.pace == Pace::kInterrupt,
                    .raise = [this](uint16_t vector) { interrupts_.raise(vector); },
                    .wake = [this] { wake(); }};
  Result<std::unique_ptr<Device>> device = co_await maker(std::move(parts));
  if (!device) co_return fail(device.error());
  device_ = std::move(*device);
  pacer_ = std::make_unique<Pacer>(env_, sharing_, glances_, *device_, options_.pace);
  migration_ = std::make_unique<Migration>(Migration::Parts{.device = *device_,
                                                            .config = config_,
                                                            .interrupts = interrupts_,
                                                            .doorbells = doorbells_->bytes()});
  co_return Result<void>{};
}

task::Task<void> Session::run(env::LocalStream& stream, const DeviceMaker& maker) {
  MessageWriter writer(stream);
  Result<void> outcome = co_await greet(stream, writer, maker);
  if (outcome) {
    outcome = co_await serve(stream, writer);
  }
  if (outcome.error() == Errc::kCorrupt || outcome.error() == Errc::kInvalid ||
      outcome.error() == Errc::kUnsupported || outcome.error() == Errc::kTimedOut ||
      outcome.error() == Errc::kLimit) {
    say(fmt::format("a vfio-user client of {} was turned away: {}", options_.device,
                    outcome.error().text()));
  }
  co_await put_away();
}

task::Task<Result<void>> Session::greet(env::LocalStream& stream, MessageWriter& writer,
                                        const DeviceMaker& maker) {
  task::Deadline deadline(env_, env_.now() + options_.greeting_timeout, stop_.token());
  Message message;
  const Result<void> read = co_await read_message(stream, message, deadline.token());
  if (!read) co_return read;
  Result<void> outcome;
  if (message.is_reply() || message.header.command != static_cast<uint16_t>(Command::kVersion)) {
    outcome = fail(Errc::kInvalid, "the first message is not VERSION");
  } else if (const Result<Capabilities> client = parse_version(message.payload); client) {
    client_ = *client;
    outcome = co_await make_device(maker);
  } else {
    outcome = fail(client.error());
  }
  Reply reply;
  if (outcome) reply.payload = answer_version(message.payload);
  OutgoingMessage answer = reply_to(message.header, outcome, std::move(reply));
  const Result<void> written = co_await writer.write(std::move(answer), deadline.token());
  co_return outcome ? written : outcome;
}

task::Task<Result<void>> Session::serve(env::LocalStream& stream, MessageWriter& writer) {
  task::CancelSource enough(stop_.token());
  Inbox inbox(stream, [this] {
    leaving_.set();
    if (!stop_.requested()) give_up();
  });
  task::Gate reading;
  reading.spawn(inbox.fill(enough.token()));
  const Result<void> outcome = co_await obey_all(inbox, writer);
  enough.request();
  co_await reading.close();
  co_return outcome;
}

// Never without an error: kClosed, when the client has left in order.
task::Task<Result<void>> Session::obey_all(Inbox& inbox, MessageWriter& writer) {
  while (true) {
    const Result<Message*> next = co_await inbox.next();
    if (!next) co_return fail(next.error());
    Message& message = **next;
    if (message.is_reply()) co_return fail(Errc::kCorrupt, "a reply that nobody has asked for");
    reply_ = {};
    const Result<void> outcome = co_await obey(message);
    const Header header = message.header;
    inbox.drop();
    if ((header.flags & kNoReply) != 0) continue;
    OutgoingMessage answer = reply_to(header, outcome, std::exchange(reply_, {}));
    const Result<void> written = co_await writer.write(std::move(answer), stop_.token());
    if (!written) co_return written;
  }
}

// Nothing that the device does for a client takes long from here on.
void Session::give_up() { device_->abandon(0, std::numeric_limits<uint64_t>::max()); }

task::Task<void> Session::put_away() {
  is_over_ = true;
  leaving_.set();
  if (pacer_ != nullptr) pacer_->rest();
  if (device_ != nullptr) {
    if (stop_.requested() && !is_aborted_) co_await device_->pause();
    give_up();
    co_await device_->close();
    co_await dma_.unmap_all(*device_);
  }
  co_await interrupts_.close();
  dirty_.stop();
  migration_ = nullptr;
  pacer_ = nullptr;
  device_ = nullptr;
}

void Session::abort() {
  is_aborted_ = true;
  stop_.request();
  if (device_ != nullptr) give_up();
}

void Session::wake() {
  if (pacer_ != nullptr && migration_->is_running() && !is_over_) pacer_->wake();
}

bool Session::ask_back() { return interrupts_.request_removal(); }

task::Task<Result<void>> Session::obey(Message& message) {
  Result<void> done;
  switch (static_cast<Command>(message.header.command.value())) {
    case Command::kDmaUnmap:
      done = co_await unmap(message);
      break;
    case Command::kRegionWrite:
      done = co_await write_region(message.payload);
      break;
    case Command::kRegionWriteMulti:
      done = co_await write_regions(message.payload);
      break;
    case Command::kReset:
      done = co_await reset();
      break;
    case Command::kFeature:
      done = co_await feature(message);
      break;
    default:
      done = obey_at_once(message);
  }
  co_return done;
}

Result<void> Session::obey_at_once(Message& message) {
  switch (static_cast<Command>(message.header.command.value())) {
    case Command::kVersion:
      return fail(Errc::kInvalid, "VERSION comes once");
    case Command::kDmaMap:
      return map(message);
    case Command::kGetInfo:
      return get_info(message.payload);
    case Command::kGetRegionInfo:
      return get_region_info(message.payload);
    case Command::kGetRegionIoFds:
      return get_region_io_fds(message.payload);
    case Command::kGetIrqInfo:
      return get_irq_info(message.payload);
    case Command::kSetIrqs:
      return set_irqs(message);
    case Command::kRegionRead:
      return read_region(message.payload);
    case Command::kDirtyPages:
      return dirty_pages(message.payload);
    case Command::kMigrationRead:
      return read_state(message.payload);
    case Command::kMigrationWrite:
      return write_state(message.payload);
    default:
      return fail(Errc::kUnsupported, "a command that a server does not know");
  }
}

Result<void> Session::set_irqs(Message& message) {
  if (message.payload.size() < sizeof(IrqSet)) return fail(Errc::kInvalid, "a short SET_IRQS");
  const auto request = load<IrqSet>(message.payload);
  return interrupts_.set(request, Bytes(message.payload).subspan(sizeof(IrqSet)),
                         message.descriptors());
}

Result<void> Session::map(Message& message) {
  if (message.payload.size() < sizeof(DmaMap)) return fail(Errc::kInvalid, "a short DMA_MAP");
  const auto request = load<DmaMap>(message.payload);
  const auto descriptors = message.descriptors();
  if (request.argsz < sizeof(DmaMap) || descriptors.size() > 1) {
    return fail(Errc::kInvalid, "a DMA_MAP of another form");
  }
  return dma_.map(request, descriptors.empty() ? nullptr : descriptors.data());
}

task::Task<Result<void>> Session::unmap(Message& message) {
  const Bytes payload = message.payload;
  if (payload.size() < sizeof(DmaUnmap)) co_return fail(Errc::kInvalid, "a short DMA_UNMAP");
  const auto request = load<DmaUnmap>(payload);
  const uint32_t flags = request.flags;
  if ((flags & ~(kUnmapGetDirty | kUnmapAll)) != 0 || flags == (kUnmapGetDirty | kUnmapAll)) {
    co_return fail(Errc::kInvalid, "flags of DMA_UNMAP");
  }
  if (flags == kUnmapAll) {
    if (request.address != 0 || request.size != 0) {
      co_return fail(Errc::kInvalid, "DMA_UNMAP of everything, with a range");
    }
    co_await dma_.unmap_all(*device_);
    answer(request);
    co_return Result<void>{};
  }
  DirtyBitmap wanted;
  if (flags == kUnmapGetDirty) {
    if (payload.size() < sizeof(DmaUnmap) + sizeof(DirtyBitmap)) {
      co_return fail(Errc::kInvalid, "a DMA_UNMAP without the bitmap's form");
    }
    wanted = load<DirtyBitmap>(payload.subspan(sizeof(DmaUnmap)));
    const Result<uint64_t> size =
        DirtyLog::bitmap_size(request.address, request.size, wanted.page_size);
    if (!size) co_return fail(size.error());
    if (wanted.size < *size || wanted.size > kBitmapMax || !dirty_.is_on()) {
      co_return fail(Errc::kInvalid, "the bitmap of a DMA_UNMAP");
    }
  }
  const Result<void> done = co_await dma_.unmap(request.address, request.size, *device_);
  if (!done) co_return done;
  answer(request);
  if (flags == kUnmapGetDirty) {
    std::vector<std::byte> bitmap = dirty_.report(request.address, request.size, wanted.page_size);
    bitmap.resize(wanted.size);
    answer(wanted);
    answer_bytes(bitmap);
  }
  co_return Result<void>{};
}

task::Task<Result<void>> Session::reset() {
  pacer_->rest();
  co_await device_->reset();
  config_.reset();
  interrupts_.reset();
  migration_->reset();
  std::ranges::fill(doorbells_->bytes(), std::byte{0});
  co_return Result<void>{};
}

}  // namespace cairn::door::vfio_user
