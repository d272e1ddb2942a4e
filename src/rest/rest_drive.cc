// SPDX-License-Identifier: Apache-2.0
#include "rest/rest_drive.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/buffer.h"
#include "drive/pieces.h"
#include "drive/size_text.h"
#include "drive/stable_memory.h"
#include "task/when_all.h"

namespace cairn::rest {

namespace {

using drive::DriveOp;
using drive::Request;

constexpr uint32_t kObjectSize = 65536;
constexpr uint32_t kBlockSize = 4096;
constexpr uint32_t kTransferBytes = 1 << 20;
constexpr size_t kPartsAtOnce = 32;
constexpr size_t kEditsAtOnce = 8;

ClientOptions client_options(const Endpoint& place) {
  return {.server = place.address,
          .host = place.host,
          .connections = place.connections,
          .timeout = place.timeout,
          .retries = place.retries};
}

bool takes_data(const Request& request) {
  return request.kind == Request::Kind::kWrite || request.kind == Request::Kind::kCompareAndWrite;
}

// What a write brings.
std::span<const MutableBytes> new_data(const DriveOp& op) {
  return op.request.kind == Request::Kind::kCompareAndWrite ? op.second() : op.data();
}

// Whether what the user asked for is what is there; a sentence if not.
std::string differs(const Endpoint& place, const ObjectLabel& label) {
  const auto tell = [](std::string_view key, const auto& asked, const auto& has) {
    return fmt::format("{}={} was given, and the drive there has {}: leave it out", key, asked,
                       has);
  };
  const uint64_t bytes = label.blocks * label.block_size;
  if (place.size && *place.size != bytes) {
    return tell("size", drive::size_text(*place.size), drive::size_text(bytes));
  }
  if (place.object_size && *place.object_size != label.object_size) {
    return tell("object", drive::size_text(*place.object_size),
                drive::size_text(label.object_size));
  }
  if (place.block_size && *place.block_size != label.block_size) {
    return tell("block", *place.block_size, label.block_size);
  }
  return "";
}

}  // namespace

RestDrive::RestDrive(env::Env& env, const Endpoint& place)
    : ServiceDrive({}),
      env_(env),
      client_(env, client_options(place)),
      store_(env, client_, place.path, place.check),
      edits_(kEditsAtOnce) {}

task::Task<RestDrive::Opened> RestDrive::open(env::Env& env, Endpoint place) {
  const std::string where = fmt::format("http://{}{}", place.host, place.path);
  std::unique_ptr<RestDrive> drive(new RestDrive(env, place));
  std::expected<ObjectLabel, std::string> label = co_await drive->find_label(place);
  if (!label) {
    co_await drive->close();
    co_return std::unexpected(fmt::format("{}: {}", where, label.error()));
  }
  ++label->generation;
  env.fill_secret(std::as_writable_bytes(std::span(label->owner)));
  const Result<void> taken = co_await drive->store_.take(*label);
  if (!taken) {
    co_await drive->close();
    co_return std::unexpected(fmt::format("{}: {}", where, taken.error().text()));
  }
  drive->shape(*label);
  co_return std::move(drive);
}

// What is there, or what a new drive will be; nothing is written.
task::Task<std::expected<ObjectLabel, std::string>> RestDrive::find_label(const Endpoint& place) {
  const Result<std::optional<ObjectLabel>> found = co_await store_.read_label(env_.stop_token());
  if (!found) co_return std::unexpected(found.error().text());
  ObjectLabel label;
  if (*found) {
    label = **found;
    if (std::string text = differs(place, label); !text.empty()) {
      co_return std::unexpected(std::move(text));
    }
  } else {
    if (!place.size) {
      co_return std::unexpected("there is no drive yet: add ?size=1G to make one");
    }
    label.block_size = place.block_size.value_or(kBlockSize);
    label.object_size = place.object_size.value_or(std::max(kObjectSize, label.block_size));
    label.blocks = *place.size / label.block_size;
    const Result<void> makes_sense = check_shape(label.blocks, label.block_size, label.object_size);
    if (!makes_sense) co_return std::unexpected(makes_sense.error().text());
    if (label.blocks * label.block_size != *place.size) {
      co_return std::unexpected("the size is no multiple of the block");
    }
    const Result<Version> first = co_await store_.look(0, env_.stop_token());
    if (!first) co_return std::unexpected(first.error().text());
    if (!first->is_absent) {
      co_return std::unexpected(
          "there are objects and no label: name another folder, or empty this one");
    }
    env_.fill_secret(std::as_writable_bytes(std::span(label.id)));
  }
  if (label.object_size > env_.buffers().size_max()) {
    co_return std::unexpected("its objects are larger than this process's buffers");
  }
  co_return label;
}

void RestDrive::shape(const ObjectLabel& label) {
  object_size_ = label.object_size;
  const uint32_t object_blocks = label.object_size / label.block_size;
  geometry_ = {.blocks = label.blocks,
               .block_size = label.block_size,
               .optimal_blocks = object_blocks,
               .discard_blocks = object_blocks,
               .atomic_blocks = object_blocks,
               .transfer_blocks = kTransferBytes / label.block_size,
               .volatile_cache = false};
}

std::vector<drive::Fact> RestDrive::facts() const {
  const Client::Counters& client = client_.counters();
  const ObjectStore::Counters& objects = store_.counters();
  return {{"gets", objects.gets},
          {"puts", objects.puts},
          {"deletes", objects.removes},
          {"requests", client.requests},
          {"retries", client.retries},
          {"connects", client.connects},
          {"conditions_honoured", store_.honours_conditions() ? 1u : 0u},
          {"taken_by_another", store_.is_lost() ? 1u : 0u}};
}

std::vector<drive::Concern> RestDrive::concerns() const {
  if (store_.is_lost()) {
    return {{.health = drive::Health::kFailing,
             .code = "taken_by_another",
             .what = "somebody else has opened the drive and changes it now, so nothing is written "
                     "here: end one of the two, and open the stack again"}};
  }
  if (!client_.unanswered()) return {};
  return {{.health = drive::Health::kFailing,
           .code = "unreachable",
           .what = fmt::format("the server did not answer the last request ({}): look after it and "
                               "the network",
                               client_.unanswered()->text())}};
}

uint64_t RestDrive::object_bytes(uint64_t object) const {
  return std::min<uint64_t>(object_size_, geometry_.bytes() - object * object_size_);
}

RestDrive::Part RestDrive::part_of(const Request& request, uint64_t at) const {
  const uint64_t byte = request.lba.value() * geometry_.block_size + at;
  const uint64_t left = request.blocks * geometry_.block_size - at;
  const uint64_t offset = byte % object_size_;
  return {.object = byte / object_size_,
          .offset = offset,
          .length = std::min<uint64_t>(left, object_size_ - offset),
          .at = at};
}

task::Task<Result<void>> RestDrive::run(DriveOp& op) {
  // A body is sent again as it was, and checked against its sum where it lies.
  if (drive::has_unstable_memory(op.request) && op.request.kind != Request::Kind::kCompare) {
    return drive::run_on_copy(env_, *this, op);
  }
  switch (op.request.kind) {
    case Request::Kind::kRead:
      return spread(op, &RestDrive::read_part);
    case Request::Kind::kCompare:
      return compare(op);
    case Request::Kind::kFlush:
      return flush();
    default:
      return change(op);
  }
}

// The server has everything that completed.
task::Task<Result<void>> RestDrive::flush() { co_return Result<void>{}; }

task::Task<Result<void>> RestDrive::spread(DriveOp& op, ForPart each) {
  const uint64_t bytes = op.request.blocks * geometry_.block_size;
  for (uint64_t at = 0; at < bytes;) {
    if (op.token().requested()) co_return fail(op.token().error());
    std::vector<task::Task<Result<void>>> parts;
    while (at < bytes && parts.size() < kPartsAtOnce) {
      const Part part = part_of(op.request, at);
      parts.push_back((this->*each)(op, part));
      at += part.length;
    }
    const std::vector<Result<void>> done = co_await task::when_all(std::move(parts));
    for (const Result<void>& one : done) {
      if (!one) co_return one;
    }
  }
  co_return Result<void>{};
}

task::Task<Result<void>> RestDrive::read_part(DriveOp& op, Part part) {
  drive::Pieces pieces;
  pieces.add(op.data(), part.at, part.length);
  const Result<Version> read = co_await store_.read(part.object, object_bytes(part.object),
                                                    part.offset, pieces.all(), op.token());
  if (!read) co_return fail(read.error());
  co_return Result<void>{};
}

task::Task<Result<void>> RestDrive::compare(const DriveOp& op) {
  const uint64_t bytes = op.request.blocks * geometry_.block_size;
  for (uint64_t at = 0; at < bytes;) {
    const Part part = part_of(op.request, at);
    Result<Buffer> memory = env_.buffers().allocate(part.length);
    if (!memory) co_return fail(memory.error());
    const MutableBytes piece = memory->bytes();
    const Result<Version> read = co_await store_.read(part.object, object_bytes(part.object),
                                                      part.offset, {&piece, 1}, op.token());
    if (!read) co_return fail(read.error());
    drive::Pieces pieces;
    pieces.add(op.data(), part.at, part.length);
    size_t compared = 0;
    for (const MutableBytes with : pieces.all()) {
      if (!std::ranges::equal(with, piece.subspan(compared, with.size()))) {
        co_return fail(Errc::kMismatch, "compare");
      }
      compared += with.size();
    }
    at += part.length;
  }
  co_return Result<void>{};
}

task::Task<Result<void>> RestDrive::change(DriveOp& op) {
  if (op.request.blocks == 0) co_return Result<void>{};
  const uint64_t first = op.request.lba.value() * geometry_.block_size / object_size_;
  const uint64_t end = (op.request.lba.value() + op.request.blocks) * geometry_.block_size;
  drive::Ranges::Hold alone(objects_, drive::Ranges::Mode::kExclusive, first,
                            (end - 1) / object_size_ - first + 1, op.token());
  const Result<void> entered = co_await alone;
  if (!entered) co_return entered;
  const Result<void> owned = co_await store_.check_owner(op.token());
  if (!owned) co_return owned;
  if (op.request.kind == Request::Kind::kCompareAndWrite) {
    const Result<void> equal = co_await compare(op);
    if (!equal) co_return equal;
  }
  const Result<void> changed = co_await spread(op, &RestDrive::change_part);
  co_return changed;
}

task::Task<Result<void>> RestDrive::change_part(DriveOp& op, Part part) {
  if (part.length < object_bytes(part.object)) return edit_part(op, part);
  if (op.request.kind == Request::Kind::kWriteZeroes && op.request.keep_space) {
    return put_zeroes(op, part);
  }
  if (!takes_data(op.request)) {
    if (store_.keeps(part.object)) return put_zeroes(op, part);
    return store_.remove(part.object, part.length, op.token());
  }
  return put_part(op, part);
}

task::Task<Result<void>> RestDrive::put_part(const DriveOp& op, Part part) {
  drive::Pieces pieces;
  pieces.add(new_data(op), part.at, part.length);
  const Result<void> put = co_await store_.put(part.object, as_const(pieces.all()), op.token());
  co_return put;
}

task::Task<Result<void>> RestDrive::put_zeroes(const DriveOp& op, Part part) {
  const Result<void> acquired = co_await edits_.acquire(1, op.token());
  if (!acquired) co_return acquired;
  const task::Units unit(edits_, 1);
  Result<Buffer> memory = env_.buffers().allocate(part.length);
  if (!memory) co_return fail(memory.error());
  std::ranges::fill(memory->bytes(), std::byte{0});
  const Bytes body = memory->bytes();
  const Result<void> put = co_await store_.put(part.object, {&body, 1}, op.token());
  co_return put;
}

task::Task<Result<void>> RestDrive::edit_part(DriveOp& op, Part part) {
  const Result<void> acquired = co_await edits_.acquire(1, op.token());
  if (!acquired) co_return acquired;
  const task::Units unit(edits_, 1);
  Result<Buffer> memory = env_.buffers().allocate(object_bytes(part.object));
  if (!memory) co_return fail(memory.error());
  const Result<Version> found = co_await store_.fetch(part.object, memory->bytes(), op.token());
  if (!found) co_return fail(found.error());
  const bool is_data = takes_data(op.request);
  if (!is_data && found->is_absent && !op.request.keep_space && !store_.keeps(part.object)) {
    co_return Result<void>{};
  }
  const MutableBytes room = memory->subspan(part.offset, part.length);
  if (is_data) {
    drive::Pieces pieces;
    pieces.add(new_data(op), part.at, part.length);
    size_t at = 0;
    for (const MutableBytes piece : pieces.all()) {
      std::ranges::copy(piece, room.begin() + static_cast<ptrdiff_t>(at));
      at += piece.size();
    }
  } else {
    std::ranges::fill(room, std::byte{0});
  }
  const Bytes body = memory->bytes();
  const Result<void> put = co_await store_.put(part.object, {&body, 1}, op.token());
  co_return put;
}

}  // namespace cairn::rest
