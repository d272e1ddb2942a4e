// SPDX-License-Identifier: Apache-2.0
#include "door/resp/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "door/resp/execute.h"
#include "door/resp/wire_format.h"
#include "task/deadline.h"

namespace cairn::door::resp {

namespace {

// Of one client at the same time; each may have a value of any size in its reply.
constexpr size_t kRunningMax = 16;
// With more words than that, nobody looks whether requests have keys in common.
constexpr size_t kComparedWordsMax = 64;
// Replies that leave together.
constexpr size_t kFlushBytes = 64_KiB;
// What an idle client keeps of its buffers.
constexpr size_t kKeptBytes = 16_KiB;
// Of a queue and watched keys.
constexpr size_t kTransactionBytesMax = 256 << 20;
// How long a client that is told why it has to go may take to read that.
constexpr Duration kGoodbye = 1_s;
// Of a request, in the error that does not know it.
constexpr size_t kQuotedMax = 128;

constexpr std::string_view kExec = "exec";
constexpr std::string_view kNoAuth = "NOAUTH";

std::string quoted_args(Args args) {
  std::string text;
  for (const std::string_view word : args) {
    if (text.size() >= kQuotedMax) break;
    text += fmt::format("'{}' ", word.substr(0, kQuotedMax - text.size()));
  }
  return text;
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

void shrink(std::string& text) {
  text.clear();
  if (text.capacity() > kKeptBytes) text = {};
}

// The command that the words name; null: there is none, and the reply says so.
const Command* look_up(const CommandTable& table, Args args, Reply& reply) {
  const Command* const command = table.find(args[0]);
  if (command == nullptr) {
    reply.error(fmt::format("ERR unknown command '{}', with args beginning with: {}",
                            args[0].substr(0, kQuotedMax), quoted_args(args.subspan(1))));
    return nullptr;
  }
  if (command->subcommands.empty() || args.size() == 1) return command;
  const Command* const found = CommandTable::find_subcommand(*command, args[1]);
  if (found == nullptr) {
    reply.error(fmt::format("ERR unknown subcommand '{}'. Try {} HELP.",
                            args[1].substr(0, kQuotedMax), upper(command->name)));
  }
  return found;
}

// The largest client, whose end frees most, has to go.
void evict_one(DoorState& door) {
  ClientState* largest = nullptr;
  door.clients.for_each([&](ClientState& client) {
    if (client.is_exempt || client.end.requested()) return;
    if (largest == nullptr || client.bytes > largest->bytes) largest = &client;
  });
  if (largest == nullptr || largest->bytes == 0) return;
  ++door.stats.clients_evicted;
  door.client_bytes -= std::exchange(largest->bytes, 0);
  largest->end.request();
}

}  // namespace

Session::Session(DoorState& door, ClientState& client, env::Stream& stream,
                 std::function<void()> on_authenticated)
    : door_(door),
      client_(client),
      stream_(stream),
      on_authenticated_(std::move(on_authenticated)),
      receiving_(client.end.token()) {}

Session::~Session() { door_.client_bytes -= std::exchange(client_.bytes, 0); }

task::Task<void> Session::run() {
  note_authentication();
  while (!client_.is_leaving && !receiving_.requested()) {
    Result<env::Chunk> chunk = co_await receive();
    if (!chunk || chunk->empty()) break;
    client_.last_used = door_.env.now();
    door_.stats.bytes_in += chunk->bytes().size();
    co_await serve(as_text(chunk->bytes()));
  }
  co_await flush();
  const Result<void> finished = stream_.finish();
  (void)finished;  // a connection that is gone already is no less gone
}

task::Task<Result<env::Chunk>> Session::receive() {
  const Duration limit =
      decoder_.is_partial() ? door_.options.stall_timeout : door_.config.idle_timeout();
  if (limit.ns == 0) {
    Result<env::Chunk> chunk = co_await stream_.receive(receiving_.token());
    co_return chunk;
  }
  task::Deadline deadline(door_.env, door_.env.now() + limit, receiving_.token());
  Result<env::Chunk> chunk = co_await stream_.receive(deadline.token());
  co_return chunk;
}

task::Task<void> Session::serve(std::string_view bytes) {
  while (!client_.is_leaving && !client_.end.requested()) {
    if (next_ == nullptr) next_ = std::make_unique<Running>();
    decoder_.set_stranger(!client_.is_authenticated);
    const Result<bool> whole = decoder_.take(bytes, next_->request);
    if (!whole) {
      co_await finish_all();
      co_await end_badly(RequestDecoder::problem(whole.error()));
      co_return;
    }
    if (!*whole) break;
    const Args args = next_->request.args;
    next_->reply.protocol = client_.protocol;
    const Command* const command = admit(args, next_->reply);
    if (command != nullptr && depends(*command, args)) co_await finish_all();
    if (command != nullptr) start(*command);
    running_.push_back(std::move(next_));
    const bool is_last = command == nullptr || command->data == nullptr;
    if (is_last) {
      co_await finish_all();
    } else if (running_.size() >= kRunningMax || running_.front()->task.is_done()) {
      co_await finish_first();
    }
    if (out_.size() >= kFlushBytes) co_await flush();
  }
  co_await finish_all();
  account();
  co_await flush();
  account();
}

const Command* Session::admit(Args args, Reply& reply) {
  Transaction& transaction = client_.transaction;
  const Command* const command = look_up(door_.commands, args, reply);
  if (command == nullptr) {
    transaction.is_broken |= transaction.is_open;
    return nullptr;
  }
  if (const std::string why = refusal(*command, args); !why.empty()) {
    if (command->name == kExec) {
      transaction = {};
      reply.error("EXECABORT Transaction discarded because of: " + why);
    } else {
      transaction.is_broken |= transaction.is_open;
      reply.error(why.starts_with(kNoAuth) ? why : "ERR " + why);
    }
    return nullptr;
  }
  ++door_.stats.commands;
  ++door_.calls[door_.commands.index_of(*command)];
  client_.last_command = command->name;
  if (!transaction.is_open || command->is(kNeverQueued)) return command;
  queue(*command, args, reply);
  return nullptr;
}

std::string Session::refusal(const Command& command, Args args) const {
  if (!command.takes(args.size())) {
    return fmt::format("wrong number of arguments for '{}' command", command.name);
  }
  if (!client_.is_authenticated && !command.is(kWithoutPassword)) {
    return fmt::format("{} Authentication required.", kNoAuth);
  }
  return {};
}

void Session::queue(const Command& command, Args args, Reply& reply) {
  Transaction& transaction = client_.transaction;
  for (const std::string_view word : args) transaction.bytes += word.size() + sizeof(std::string);
  if (transaction.bytes > kTransactionBytesMax) {
    transaction.is_broken = true;
    return reply.error("ERR a transaction of more than 256 MiB");
  }
  transaction.queue.push_back({&command, {args.begin(), args.end()}});
  reply.status("QUEUED");
}

void Session::start(const Command& command) {
  next_->call.emplace(
      Call{door_, client_, command, next_->request.args, next_->reply, door_.env.wall_now()});
  next_->task = execute(*next_->call);
}

bool Session::depends(const Command& command, Args args) const {
  if (running_.empty()) return false;
  if (command.data == nullptr || args.size() > kComparedWordsMax) return true;
  for (const auto& each : running_) {
    if (!each->call) continue;
    const Call& other = *each->call;
    if (command.is(kReads) && other.command.is(kReads)) continue;
    if (other.args.size() > kComparedWordsMax) return true;
    bool is_common = false;
    for_each_key(command, args, [&](std::string_view mine) {
      for_each_key(other.command, other.args,
                   [&](std::string_view its) { is_common |= mine == its; });
    });
    if (is_common) return true;
  }
  return false;
}

task::Task<void> Session::finish_first() {
  Running& first = *running_.front();
  if (first.task.is_valid()) co_await first.task;
  emit(first.reply);
  std::unique_ptr<Running> done = std::move(running_.front());
  running_.pop_front();
  if (next_ != nullptr) co_return;  // it holds a request that waited for this one
  done->call.reset();
  done->task = {};
  shrink(done->reply.bytes);
  next_ = std::move(done);
}

task::Task<void> Session::finish_all() {
  while (!running_.empty()) co_await finish_first();
  note_authentication();
}

void Session::emit(Reply& reply) {
  using Replies = ClientState::Replies;
  door_.stats.errors += std::exchange(reply.errors, 0);
  switch (client_.replies) {
    case Replies::kOn:
      break;
    case Replies::kOff:
      return;
    case Replies::kSkipNext:
      client_.replies = Replies::kSkipThis;
      return;
    case Replies::kSkipThis:
      client_.replies = Replies::kOn;
      return;
  }
  if (out_.empty()) {
    std::swap(out_, reply.bytes);
  } else {
    out_ += reply.bytes;
  }
}

task::Task<void> Session::flush() {
  if (out_.empty() || client_.end.requested()) co_return;
  std::swap(out_, sending_);
  if (sending_.size() > kKeptBytes) account();
  task::Deadline deadline(door_.env, door_.env.now() + door_.options.stall_timeout,
                          client_.end.token());
  const Result<void> sent = co_await stream_.write(as_bytes(sending_), deadline.token());
  if (!sent) client_.end.request();
  door_.stats.bytes_out += sent ? sending_.size() : 0;
  shrink(sending_);
}

task::Task<void> Session::end_badly(std::string problem) {
  client_.is_leaving = true;
  Reply reply;
  reply.error("ERR " + problem);
  emit(reply);
  co_await flush();
  if (!stream_.finish()) co_return;
  // What it still sends is thrown away: a connection that is closed with bytes unread is reset, and
  // the client would not hear why.
  task::Deadline deadline(door_.env, door_.env.now() + kGoodbye, receiving_.token());
  for (bool is_open = true; is_open;) {
    const Result<env::Chunk> chunk = co_await stream_.receive(deadline.token());
    is_open = chunk && !chunk->empty();
  }
}

void Session::account() {
  client_.request_bytes = decoder_.held();
  client_.reply_bytes = out_.capacity() + sending_.capacity();
  if (client_.end.requested()) return;
  const size_t bytes = client_.request_bytes + client_.reply_bytes + client_.transaction.bytes;
  door_.client_bytes += bytes - std::exchange(client_.bytes, bytes);
  if (door_.client_bytes > door_.config.client_bytes_max()) evict_one(door_);
}

void Session::note_authentication() {
  if (client_.is_authenticated && on_authenticated_) std::exchange(on_authenticated_, nullptr)();
}

}  // namespace cairn::door::resp
