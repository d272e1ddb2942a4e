// SPDX-License-Identifier: Apache-2.0
#include "door/nbd/negotiation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/check.h"
#include "door/nbd/option_request.h"
#include "tls/stream.h"

namespace cairn::door::nbd {

namespace {

// Longer payloads are not even skipped.
constexpr uint32_t kOptionSkipMax = 1 << 20;
constexpr size_t kReceiverSize = 64UL * 1024;
constexpr size_t kReplyPiecesMax = 4;

std::unexpected<Error> broken(const char* what) { return fail(Errc::kInvalid, what); }

// Of a request: what the drive likes best, but at least a page and no more than a message carries.
uint32_t preferred_size(Export& chosen) {
  const drive::Geometry& shape = chosen.drive().geometry();
  const uint64_t wanted = uint64_t{shape.block_size} * std::max(shape.optimal_blocks, 1u);
  const auto size = static_cast<uint32_t>(std::min<uint64_t>(wanted, kPayloadMax));
  return std::max(std::bit_floor(size), 4096u);
}

}  // namespace

task::Task<Result<Agreement>> Negotiation::run(Line& line, task::CancelToken token) {
  line_ = &line;
  token_ = token;
  const Result<void> greeted = co_await greet();
  if (!greeted) co_return fail(greeted.error());
  for (;;) {
    Result<std::optional<Question>> question = co_await next_question();
    if (!question) co_return fail(question.error());
    if (!question->has_value()) continue;  // it was too long and is answered
    const Result<Outcome> outcome = co_await answer(**question);
    if (!outcome) co_return fail(outcome.error());
    if (*outcome == Outcome::kChosen) co_return agreement_;
  }
}

task::Task<Result<void>> Negotiation::greet() {
  line_->receiver = std::make_unique<stream::Receiver>(*line_->stream, kReceiverSize);
  const Greeting greeting;
  const Result<void> sent = co_await send(bytes_of(greeting));
  if (!sent) co_return sent;
  const Result<void> came = co_await line_->receiver->wait_for(sizeof(Be32), token_);
  if (!came) co_return came;
  const uint32_t flags = load<Be32>(line_->receiver->bytes());
  line_->receiver->take(sizeof(Be32));
  if ((flags & ~uint32_t{kFixedNewstyle | kNoZeroes}) != 0) co_return broken("unknown flags");
  is_fixed_ = (flags & kFixedNewstyle) != 0;
  no_zeroes_ = (flags & kNoZeroes) != 0;
  co_return Result<void>{};
}

task::Task<Result<std::optional<Negotiation::Question>>> Negotiation::next_question() {
  stream::Receiver& receiver = *line_->receiver;
  Result<void> came = co_await receiver.wait_for(sizeof(OptionHeader), token_);
  if (!came) co_return fail(came.error());
  const auto header = load<OptionHeader>(receiver.bytes());
  receiver.take(sizeof(header));
  if (header.magic != kOptionMagic) co_return broken("not an NBD option");
  Question question{.option = static_cast<Option>(static_cast<uint32_t>(header.option))};
  if (header.length > kOptionSkipMax) co_return broken("an option longer than any");
  if (header.length > kOptionMax) {
    if (question.option == Option::kExportName) co_return broken("a name longer than any");
    came = co_await receiver.skip(header.length, token_);
    if (came) came = co_await refuse(question.option, OptionReply::kTooBig, "option is too long");
    if (!came) co_return fail(came.error());
    co_return std::nullopt;
  }
  question.payload.resize(header.length);
  came = co_await receiver.read_into(question.payload, token_);
  if (!came) co_return fail(came.error());
  co_return std::optional(std::move(question));
}

task::Task<Result<Negotiation::Outcome>> Negotiation::answer(const Question& question) {
  const Option option = question.option;
  if (!is_fixed_ && option != Option::kExportName) co_return broken("an option out of turn");
  Result<void> done;
  if (option == Option::kAbort) {
    done = co_await reply(option, OptionReply::kAck);
    co_return fail(Errc::kClosed, "the client ended the negotiation");
  }
  if (must_start_tls() && option != Option::kStartTls) {
    if (option == Option::kExportName) co_return broken("a client without TLS");
    done = co_await refuse(option, OptionReply::kTlsRequired, "this server speaks TLS only");
  } else {
    switch (option) {
      case Option::kExportName: {
        const Result<Outcome> chosen = co_await choose_by_name(question);
        co_return chosen;
      }
      case Option::kInfo:
      case Option::kGo: {
        const Result<Outcome> chosen = co_await inform(question);
        co_return chosen;
      }
      case Option::kList:
        done = co_await list(question);
        break;
      case Option::kStartTls:
        done = co_await start_tls(question);
        break;
      case Option::kStructuredReply:
        if (!question.payload.empty()) {
          done = co_await refuse(option, OptionReply::kInvalid, "this option has no data");
          break;
        }
        agreement_.structured = true;
        done = co_await reply(option, OptionReply::kAck);
        break;
      case Option::kListMetaContext:
      case Option::kSetMetaContext:
        done = co_await agree_on_contexts(question);
        break;
      default:
        done = co_await refuse(option, OptionReply::kUnsupported, "this server has no such option");
        break;
    }
  }
  if (!done) co_return fail(done.error());
  co_return Outcome::kGoesOn;
}

uint16_t Negotiation::flags_of(const Export& chosen) const {
  uint32_t flags = kHasFlags | kSendFlush | kSendFua | kCanMultiConn | kSendCache;
  flags |= chosen.options().read_only ? kReadOnly : kSendTrim | kSendWriteZeroes | kSendFastZero;
  if (agreement_.structured) flags |= kSendDf;
  return static_cast<uint16_t>(flags);
}

// The oldest way to choose; it has no answer for "no such export" but the end.
task::Task<Result<Negotiation::Outcome>> Negotiation::choose_by_name(const Question& question) {
  const Result<Export*> found = co_await visit_.find(std::string(as_text(question.payload)));
  if (!found) co_return fail(found.error());
  agreement_.served = *found;
  agreement_.allocation = agreement_.allocation && context_name_ == as_text(question.payload);
  const ExportNameReply reply{.size = (*found)->size(), .flags = flags_of(**found)};
  const Bytes bytes = bytes_of(reply);
  const Result<void> sent =
      co_await send(no_zeroes_ ? bytes.first(ExportNameReply::kShortSize) : bytes);
  if (!sent) co_return fail(sent.error());
  co_return Outcome::kChosen;
}

task::Task<Result<Negotiation::Outcome>> Negotiation::inform(const Question& question) {
  const Result<InfoRequest> request = parse_info_request(question.payload);
  Result<void> done;
  if (!request) {
    done = co_await refuse(question.option, OptionReply::kInvalid, request.error().what());
    if (!done) co_return fail(done.error());
    co_return Outcome::kGoesOn;
  }
  const Result<Export*> found = co_await visit_.find(request->name);
  if (!found) {
    const bool unknown = found.error() == Errc::kNotFound;
    done = co_await refuse(question.option, unknown ? OptionReply::kUnknown : OptionReply::kPolicy,
                           found.error().what());
    if (!done) co_return fail(done.error());
    co_return Outcome::kGoesOn;
  }
  Export& chosen = **found;
  const ExportOptions& its = chosen.options();
  const ExportInfo info{.size = chosen.size(), .flags = flags_of(chosen)};
  done = co_await reply(question.option, OptionReply::kInfo, {bytes_of(info)});
  const Be16 name_type(static_cast<uint16_t>(InfoType::kName));
  if (done && request->wants_name) {
    done = co_await reply(question.option, OptionReply::kInfo,
                          {bytes_of(name_type), as_bytes(its.name)});
  }
  const Be16 description_type(static_cast<uint16_t>(InfoType::kDescription));
  if (done && request->wants_description && !its.description.empty()) {
    done = co_await reply(question.option, OptionReply::kInfo,
                          {bytes_of(description_type), as_bytes(its.description)});
  }
  const BlockSizeInfo sizes{
      .minimum = 1, .preferred = preferred_size(chosen), .maximum = kPayloadMax};
  if (done) done = co_await reply(question.option, OptionReply::kInfo, {bytes_of(sizes)});
  if (done) done = co_await reply(question.option, OptionReply::kAck);
  if (!done) co_return fail(done.error());
  if (question.option == Option::kInfo) co_return Outcome::kGoesOn;
  agreement_.served = &chosen;
  agreement_.allocation = agreement_.allocation && context_name_ == request->name;
  co_return Outcome::kChosen;
}

task::Task<Result<void>> Negotiation::list(const Question& question) {
  if (!question.payload.empty()) {
    const Result<void> done =
        co_await refuse(question.option, OptionReply::kInvalid, "this option has no data");
    co_return done;
  }
  Result<void> done;
  // Exports come and go while the replies are sent.
  std::vector<std::pair<std::string, std::string>> all;
  for (const SharedExport* each : visit_.all()) {
    all.emplace_back(each->options.name, each->options.description);
  }
  for (const auto& [name, description] : all) {
    const Be32 length(static_cast<uint32_t>(name.size()));
    done = co_await reply(question.option, OptionReply::kServer,
                          {bytes_of(length), as_bytes(name), as_bytes(description)});
    if (!done) co_return done;
  }
  done = co_await reply(question.option, OptionReply::kAck);
  co_return done;
}

task::Task<Result<void>> Negotiation::start_tls(const Question& question) {
  Result<void> done;
  if (context_ == nullptr) {
    done = co_await refuse(question.option, OptionReply::kUnsupported,
                           "this server has no keys for TLS");
    co_return done;
  }
  if (is_secure_ || !question.payload.empty()) {
    done = co_await refuse(question.option, OptionReply::kInvalid,
                           is_secure_ ? "TLS is in use already" : "this option has no data");
    co_return done;
  }
  done = co_await reply(question.option, OptionReply::kAck);
  if (!done) co_return done;
  // What came behind it in the clear may be anybody's.
  if (!line_->receiver->bytes().empty()) co_return broken("plain text after STARTTLS");
  line_->receiver.reset();
  tls::PskKeeper& keeper = *this;
  auto secure = std::make_unique<tls::TlsStream>(env_, std::move(line_->stream), *context_, keeper,
                                                 lingering_);
  done = co_await secure->shake_hands(options_.negotiation_timeout, token_);
  line_->stream = std::move(secure);
  line_->receiver = std::make_unique<stream::Receiver>(*line_->stream, kReceiverSize);
  is_secure_ = true;
  agreement_ = {};
  context_name_.reset();
  co_return done;
}

task::Task<Result<tls::Psk>> Negotiation::choose(std::vector<std::string> identities) {
  co_return options_.keys->choose(identities);
}

task::Task<Result<void>> Negotiation::agree_on_contexts(const Question& question) {
  const bool listing = question.option == Option::kListMetaContext;
  const Result<ContextRequest> request = parse_context_request(question.payload);
  Result<void> done;
  if (!listing) {
    agreement_.allocation = false;
    context_name_.reset();
  }
  if (!agreement_.structured || !request) {
    const bool too_many = !request && request.error() == Errc::kLimit;
    done = co_await refuse(question.option, too_many ? OptionReply::kTooBig : OptionReply::kInvalid,
                           request ? "structured replies come first" : request.error().what());
    co_return done;
  }
  if (!visit_.has(request->name)) {
    const Result<Export*> found = co_await visit_.find(request->name);
    if (!found) {
      done = co_await refuse(question.option, OptionReply::kUnknown, found.error().what());
      co_return done;
    }
  }
  bool wanted = listing && request->queries.empty();
  for (const std::string& query : request->queries) {
    wanted = wanted || asks_for_allocation(query, listing);
  }
  if (wanted) {
    const Be32 id(listing ? 0 : kAllocationId);
    done = co_await reply(question.option, OptionReply::kMetaContext,
                          {bytes_of(id), as_bytes(kBaseAllocation)});
    if (!done) co_return done;
  }
  if (wanted && !listing) {
    agreement_.allocation = true;
    context_name_ = request->name;
  }
  done = co_await reply(question.option, OptionReply::kAck);
  co_return done;
}

task::Task<Result<void>> Negotiation::reply(Option option, OptionReply type,
                                            std::initializer_list<Bytes> pieces) {
  std::array<Bytes, kReplyPiecesMax> all;
  size_t count = 1;
  size_t length = 0;
  CHECK(pieces.size() < kReplyPiecesMax);
  for (const Bytes piece : pieces) {
    length += piece.size();
    all[count++] = piece;
  }
  const OptionReplyHeader header{.option = static_cast<uint32_t>(option),
                                 .reply = static_cast<uint32_t>(type),
                                 .length = static_cast<uint32_t>(length)};
  all[0] = bytes_of(header);
  const Result<void> sent =
      co_await line_->stream->write(std::span<const Bytes>(all).first(count), token_);
  co_return sent;
}

task::Task<Result<void>> Negotiation::refuse(Option option, OptionReply type,
                                             std::string_view why) {
  refusal_ = why;
  return reply(option, type, {as_bytes(why)});
}

task::Task<Result<void>> Negotiation::send(Bytes bytes) {
  const Result<void> sent = co_await line_->stream->write(bytes, token_);
  co_return sent;
}

}  // namespace cairn::door::nbd
