// SPDX-License-Identifier: Apache-2.0
#include "testing/door/nbd_client.h"

#include <algorithm>
#include <utility>

#include "env/io.h"
#include "task/deadline.h"

namespace cairn::door_tests {

namespace {

using door::nbd::Be16;
using door::nbd::Be32;
using door::nbd::bytes_of;

std::unexpected<Error> strange(const char* what) { return fail(Errc::kCorrupt, what); }

void append(Content& to, Bytes bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

void append_string(Content& to, std::string_view text) {
  append(to, bytes_of(Be32(static_cast<uint32_t>(text.size()))));
  append(to, as_bytes(text));
}

}  // namespace

Content info_payload(std::string_view name) {
  Content payload;
  append_string(payload, name);
  append(payload, bytes_of(Be16(1)));
  append(payload, bytes_of(Be16(static_cast<uint16_t>(door::nbd::InfoType::kBlockSize))));
  return payload;
}

Content context_payload(std::string_view name, const std::vector<std::string>& queries) {
  Content payload;
  append_string(payload, name);
  append(payload, bytes_of(Be32(static_cast<uint32_t>(queries.size()))));
  for (const std::string& query : queries) append_string(payload, query);
  return payload;
}

task::Task<Result<void>> NbdClient::dial(env::Address at) {
  task::Deadline deadline(env_, env_.now() + timeout_, env_.stop_token());
  Result<std::unique_ptr<env::Stream>> stream =
      co_await env::connect_stream(env_, std::move(at), {}, deadline.token());
  if (!stream) co_return fail(stream.error());
  stream_ = std::move(*stream);
  co_return Result<void>{};
}

task::Task<Result<void>> NbdClient::send(Bytes bytes) {
  task::Deadline deadline(env_, env_.now() + timeout_, env_.stop_token());
  const Result<void> sent = co_await stream_->write(bytes, deadline.token());
  co_return sent;
}

task::Task<Result<Content>> NbdClient::receive(size_t size) {
  Content bytes(size);
  task::Deadline deadline(env_, env_.now() + timeout_, env_.stop_token());
  const Result<void> came = co_await env::read_exactly(*stream_, bytes, deadline.token());
  if (!came) co_return fail(came.error());
  co_return bytes;
}

task::Task<Result<void>> NbdClient::greet(uint32_t flags) {
  const Result<Content> came = co_await receive(sizeof(door::nbd::Greeting));
  if (!came) co_return fail(came.error());
  const auto greeting = load<door::nbd::Greeting>(*came);
  if (greeting.magic != door::nbd::kNbdMagic || greeting.option_magic != door::nbd::kOptionMagic ||
      greeting.flags != 3) {
    co_return strange("greeting");
  }
  const Be32 answer(flags);
  const Result<void> sent = co_await send(bytes_of(answer));
  co_return sent;
}

task::Task<Result<void>> NbdClient::ask_option(door::nbd::Option option, Content payload) {
  Content bytes;
  const door::nbd::OptionHeader header{.option = static_cast<uint32_t>(option),
                                       .length = static_cast<uint32_t>(payload.size())};
  append(bytes, bytes_of(header));
  append(bytes, payload);
  const Result<void> sent = co_await send(bytes);
  co_return sent;
}

task::Task<Result<OptionAnswer>> NbdClient::option_answer(door::nbd::Option option) {
  const Result<Content> came = co_await receive(sizeof(door::nbd::OptionReplyHeader));
  if (!came) co_return fail(came.error());
  const auto header = load<door::nbd::OptionReplyHeader>(*came);
  if (header.magic != door::nbd::kOptionReplyMagic ||
      header.option != static_cast<uint32_t>(option)) {
    co_return strange("option reply");
  }
  Result<Content> data = co_await receive(header.length);
  if (!data) co_return fail(data.error());
  co_return OptionAnswer{
      .type = static_cast<door::nbd::OptionReply>(static_cast<uint32_t>(header.reply)),
      .data = std::move(*data)};
}

task::Task<Result<OptionAnswer>> NbdClient::option(door::nbd::Option option, Content payload) {
  const Result<void> asked = co_await ask_option(option, std::move(payload));
  if (!asked) co_return fail(asked.error());
  Result<OptionAnswer> answer = co_await option_answer(option);
  co_return answer;
}

task::Task<Result<void>> NbdClient::structured() {
  const Result<OptionAnswer> answer = co_await option(door::nbd::Option::kStructuredReply);
  if (!answer) co_return fail(answer.error());
  if (answer->type != door::nbd::OptionReply::kAck)
    co_return strange("structured replies are refused");
  co_return Result<void>{};
}

task::Task<Result<void>> NbdClient::allocation(std::string_view name) {
  constexpr auto kSet = door::nbd::Option::kSetMetaContext;
  Result<OptionAnswer> answer = co_await option(kSet, context_payload(name, {"base:allocation"}));
  if (!answer) co_return fail(answer.error());
  if (answer->type != door::nbd::OptionReply::kMetaContext) co_return strange("context is refused");
  answer = co_await option_answer(kSet);
  if (!answer) co_return fail(answer.error());
  co_return Result<void>{};
}

task::Task<Result<Told>> NbdClient::go(std::string_view name, door::nbd::Option by) {
  Told told;
  const Result<void> asked = co_await ask_option(by, info_payload(name));
  if (!asked) co_return fail(asked.error());
  for (;;) {
    const Result<OptionAnswer> answer = co_await option_answer(by);
    if (!answer) co_return fail(answer.error());
    if (answer->type == door::nbd::OptionReply::kAck) co_return told;
    if (answer->type != door::nbd::OptionReply::kInfo) co_return fail(Errc::kNotFound, "refused");
    const uint16_t type = load<Be16>(answer->data);
    if (type == static_cast<uint16_t>(door::nbd::InfoType::kExport)) {
      const auto info = load<door::nbd::ExportInfo>(answer->data);
      told.size = info.size;
      told.flags = info.flags;
    } else if (type == static_cast<uint16_t>(door::nbd::InfoType::kBlockSize)) {
      const auto sizes = load<door::nbd::BlockSizeInfo>(answer->data);
      told.minimum = sizes.minimum;
      told.preferred = sizes.preferred;
      told.maximum = sizes.maximum;
    }
  }
}

task::Task<Result<Told>> NbdClient::arrive(env::Address at, std::string_view name,
                                           bool is_structured) {
  Result<void> done = co_await dial(std::move(at));
  if (done) done = co_await greet();
  if (done && is_structured) done = co_await structured();
  if (done && is_structured) done = co_await allocation(name);
  if (!done) co_return fail(done.error());
  Result<Told> told = co_await go(name);
  co_return told;
}

task::Task<Result<uint64_t>> NbdClient::ask(Ask request, Bytes payload) {
  const uint64_t cookie = ++last_cookie_;
  asked_[cookie] = request;
  const door::nbd::RequestHeader header{.flags = request.flags,
                                        .command = static_cast<uint16_t>(request.command),
                                        .cookie = cookie,
                                        .offset = request.offset,
                                        .length = request.length};
  Content bytes;
  append(bytes, bytes_of(header));
  append(bytes, payload);
  const Result<void> sent = co_await send(bytes);
  if (!sent) co_return fail(sent.error());
  co_return cookie;
}

task::Task<Result<Answer>> NbdClient::answer() {
  for (;;) {
    const Result<bool> complete = co_await take_chunk();
    if (!complete) co_return fail(complete.error());
    if (*complete) co_return *std::exchange(complete_, std::nullopt);
  }
}

task::Task<Result<bool>> NbdClient::take_chunk() {
  Result<Content> came = co_await receive(sizeof(door::nbd::SimpleReply));
  if (!came) co_return fail(came.error());
  const auto simple = load<door::nbd::SimpleReply>(*came);
  const bool is_simple = simple.magic == door::nbd::kSimpleReplyMagic;
  if (!is_simple && simple.magic != door::nbd::kChunkMagic) co_return strange("magic of a reply");
  door::nbd::ChunkHeader header;
  if (!is_simple) {
    const Result<Content> rest = co_await receive(sizeof(header) - sizeof(simple));
    if (!rest) co_return fail(rest.error());
    append(*came, *rest);
    header = load<door::nbd::ChunkHeader>(*came);
  }
  const uint64_t cookie = is_simple ? simple.cookie : header.cookie;
  const auto asked = asked_.find(cookie);
  if (asked == asked_.end()) co_return strange("a reply to nothing");
  Answer& answer = coming_[cookie];
  answer.cookie = cookie;
  const bool reads = asked->second.command == door::nbd::Command::kRead;
  if (reads) answer.data.resize(asked->second.length);
  bool is_last = true;
  if (is_simple) {
    answer.error = simple.error;
    if (reads && answer.error == 0) {
      Result<Content> data = co_await receive(asked->second.length);
      if (!data) co_return fail(data.error());
      answer.data = std::move(*data);
    }
  } else {
    const Result<void> taken = co_await take_body(answer, header);
    if (!taken) co_return fail(taken.error());
    is_last = (header.flags & door::nbd::kChunkDone) != 0;
  }
  if (!is_last) co_return false;
  complete_ = std::move(answer);
  coming_.erase(cookie);
  asked_.erase(cookie);
  co_return true;
}

task::Task<Result<void>> NbdClient::take_body(Answer& into, const door::nbd::ChunkHeader& header) {
  if (header.length > door::nbd::kPayloadMax + 8) co_return strange("length of a chunk");
  const auto type = static_cast<door::nbd::ChunkType>(static_cast<uint16_t>(header.type));
  const Result<Content> came = co_await receive(header.length);
  if (!came) co_return fail(came.error());
  const Bytes body(*came);
  const Ask asked = asked_.at(into.cookie);
  ++into.chunks;
  switch (type) {
    case door::nbd::ChunkType::kNone:
      break;
    case door::nbd::ChunkType::kOffsetData: {
      const uint64_t at = load<door::nbd::Be64>(body) - asked.offset;
      if (at > asked.length || body.size() - 8 > asked.length - at) co_return strange("data");
      std::ranges::copy(body.subspan(8), into.data.begin() + static_cast<ptrdiff_t>(at));
      break;
    }
    case door::nbd::ChunkType::kOffsetHole:
      ++into.holes;
      break;
    case door::nbd::ChunkType::kBlockStatus:
      for (size_t at = 4; at < body.size(); at += sizeof(door::nbd::StatusExtent)) {
        into.extents.push_back(load<door::nbd::StatusExtent>(body.subspan(at)));
      }
      break;
    case door::nbd::ChunkType::kErrorOffset:
      into.error_offset = load<door::nbd::Be64>(body.subspan(body.size() - 8));
      [[fallthrough]];
    case door::nbd::ChunkType::kError:
      into.error = load<Be32>(body);
      break;
  }
  co_return Result<void>{};
}

task::Task<Result<Answer>> NbdClient::call(Ask request, Bytes payload) {
  const Result<uint64_t> asked = co_await ask(request, payload);
  if (!asked) co_return fail(asked.error());
  Result<Answer> got = co_await answer();
  co_return got;
}

}  // namespace cairn::door_tests
