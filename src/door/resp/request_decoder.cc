// SPDX-License-Identifier: Apache-2.0
#include "door/resp/request_decoder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "door/resp/number.h"
#include "door/resp/wire_format.h"

namespace cairn::door::resp {

namespace {

// What a word costs besides its bytes.
constexpr uint64_t kWordOverhead = 48;
constexpr size_t kPartsReserved = 16;
constexpr size_t kLineKept = 256;

constexpr char kWrongMarker[] = "Protocol error: expected '$', got";

}  // namespace

std::string RequestDecoder::problem(const Error& error) {
  std::string text = error.what();
  if (text == kWrongMarker) {
    text += " '";
    text += static_cast<char>(error.detail());
    text += "'";
  }
  return text;
}

Result<bool> RequestDecoder::take(std::string_view& bytes, RequestArgs& into) {
  for (;;) {
    const Result<Step> done = step(bytes);
    if (!done) return fail(done.error());
    if (*done == Step::kMore) {
      keep_parts();
      return false;
    }
    if (*done == Step::kDone) {
      finish(into);
      return true;
    }
  }
}

Result<RequestDecoder::Step> RequestDecoder::step(std::string_view& bytes) {
  switch (state_) {
    case State::kStart:
      if (bytes.empty()) return Step::kMore;
      state_ = bytes.front() == static_cast<char>(Marker::kArray) ? State::kCount : State::kInline;
      return Step::kGoOn;
    case State::kInline:
      return take_inline(bytes);
    case State::kCount:
      return take_count(bytes);
    case State::kBulkSize:
      return take_bulk_size(bytes);
    case State::kBulk:
      return take_bulk(bytes);
    case State::kBulkEnd:
      break;
  }
  const size_t skipped = std::min<size_t>(bulk_left_, bytes.size());
  bytes.remove_prefix(skipped);
  bulk_left_ -= skipped;
  return bulk_left_ > 0 ? Step::kMore : end_bulk();
}

Result<bool> RequestDecoder::take_line(std::string_view& bytes, std::string_view& line,
                                       const char* too_long) {
  if (is_line_over_) {
    line_.clear();
    is_line_over_ = false;
  }
  const size_t end = bytes.find('\n');
  const size_t more = std::min(end, bytes.size());
  if (line_.size() + more > kLineBytesMax) return fail(Errc::kLimit, too_long);
  if (end == std::string_view::npos) {
    line_ += bytes;
    bytes = {};
    return false;
  }
  line = bytes.substr(0, end);
  bytes.remove_prefix(end + 1);
  if (!line_.empty()) {
    line_ += line;
    line = line_;
    is_line_over_ = true;
  }
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

Result<RequestDecoder::Step> RequestDecoder::take_inline(std::string_view& bytes) {
  std::string_view line;
  const Result<bool> whole = take_line(bytes, line, "Protocol error: too big inline request");
  if (!whole) return fail(whole.error());
  if (!*whole) return Step::kMore;
  std::vector<size_t> sizes;
  const Result<void> split = split_args(line, storage_, sizes);
  if (!split) return fail(split.error());
  state_ = State::kStart;
  is_kept_ = true;
  size_t offset = 0;
  for (const size_t size : sizes) {
    parts_.push_back({.data = nullptr, .offset = offset, .size = size});
    offset += size;
  }
  return sizes.empty() ? Step::kGoOn : Step::kDone;
}

Result<RequestDecoder::Step> RequestDecoder::take_count(std::string_view& bytes) {
  std::string_view line;
  const Result<bool> whole = take_line(bytes, line, "Protocol error: too big mbulk count string");
  if (!whole) return fail(whole.error());
  if (!*whole) return Step::kMore;
  line.remove_prefix(1);
  const std::optional<int64_t> count = parse_integer(line);
  if (!count || *count > static_cast<int64_t>(kArgsMax)) {
    return fail(Errc::kInvalid, "Protocol error: invalid multibulk length");
  }
  if (is_stranger_ && *count > static_cast<int64_t>(kStrangerArgsMax)) {
    return fail(Errc::kLimit, "Protocol error: unauthenticated multibulk length");
  }
  state_ = *count > 0 ? State::kBulkSize : State::kStart;
  args_left_ = *count > 0 ? static_cast<uint64_t>(*count) : 0;
  parts_.reserve(std::min<size_t>(args_left_, kPartsReserved));
  return Step::kGoOn;
}

Result<RequestDecoder::Step> RequestDecoder::take_bulk_size(std::string_view& bytes) {
  std::string_view line;
  const Result<bool> whole = take_line(bytes, line, "Protocol error: too big bulk count string");
  if (!whole) return fail(whole.error());
  if (!*whole) return Step::kMore;
  const char marker = line.empty() ? '\r' : line.front();
  if (marker != static_cast<char>(Marker::kBulk)) {
    return fail(Errc::kInvalid, kWrongMarker, static_cast<unsigned char>(marker));
  }
  line.remove_prefix(1);
  const std::optional<int64_t> size = parse_integer(line);
  if (!size || *size < 0 || *size > static_cast<int64_t>(kBulkBytesMax)) {
    return fail(Errc::kInvalid, "Protocol error: invalid bulk length");
  }
  if (is_stranger_ && *size > static_cast<int64_t>(kStrangerBulkBytesMax)) {
    return fail(Errc::kLimit, "Protocol error: unauthenticated bulk length");
  }
  bulk_left_ = static_cast<uint64_t>(*size);
  bytes_ += bulk_left_ + kWordOverhead;
  if (bytes_ > kRequestBytesMax) {
    return fail(Errc::kLimit, "Protocol error: a request of more than 64 MiB");
  }
  state_ = State::kBulk;
  return Step::kGoOn;
}

RequestDecoder::Step RequestDecoder::take_bulk(std::string_view& bytes) {
  if (!is_kept_ && bytes.size() >= bulk_left_ + kLineEnd.size()) {
    parts_.push_back({.data = bytes.data(), .offset = 0, .size = bulk_left_});
    bytes.remove_prefix(bulk_left_ + kLineEnd.size());
    return end_bulk();
  }
  keep_parts();
  is_kept_ = true;
  if (!is_word_open_) parts_.push_back({.data = nullptr, .offset = storage_.size(), .size = 0});
  is_word_open_ = true;
  const size_t more = std::min<size_t>(bulk_left_, bytes.size());
  storage_.insert(storage_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(more));
  bytes.remove_prefix(more);
  parts_.back().size += more;
  bulk_left_ -= more;
  if (bulk_left_ > 0) return Step::kMore;
  is_word_open_ = false;
  bulk_left_ = kLineEnd.size();
  state_ = State::kBulkEnd;
  return Step::kGoOn;
}

RequestDecoder::Step RequestDecoder::end_bulk() {
  --args_left_;
  state_ = args_left_ > 0 ? State::kBulkSize : State::kStart;
  return args_left_ > 0 ? Step::kGoOn : Step::kDone;
}

void RequestDecoder::keep_parts() {
  if (is_kept_ || parts_.empty()) return;
  is_kept_ = true;
  for (Part& part : parts_) {
    part.offset = storage_.size();
    storage_.insert(storage_.end(), part.data, part.data + part.size);
  }
}

void RequestDecoder::finish(RequestArgs& into) {
  into.storage = std::exchange(storage_, {});
  into.args.clear();
  for (const Part& part : parts_) {
    const char* const data = is_kept_ ? into.storage.data() + part.offset : part.data;
    into.args.emplace_back(data, part.size);
  }
  // A client that is idle keeps little.
  if (parts_.capacity() > kPartsReserved) parts_ = {};
  parts_.clear();
  if (line_.capacity() > kLineKept) line_ = {};
  is_kept_ = false;
  bytes_ = 0;
}

namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char escaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

// Takes what follows an opening quote, and the closing one. False: there is none.
bool take_quoted(std::string_view& line, char quote, std::vector<char>& into) {
  while (!line.empty()) {
    const char c = line.front();
    line.remove_prefix(1);
    if (c == quote) return line.empty() || is_space(line.front());
    if (c != '\\' || line.empty()) {
      into.push_back(c);
      continue;
    }
    const char next = line.front();
    if (quote == '\'') {
      into.push_back(next == '\'' ? '\'' : c);
      if (next == '\'') line.remove_prefix(1);
    } else if (next == 'x' && line.size() >= 3 && digit_of(line[1]) >= 0 &&
               digit_of(line[2]) >= 0) {
      into.push_back(static_cast<char>(digit_of(line[1]) * 16 + digit_of(line[2])));
      line.remove_prefix(3);
    } else {
      into.push_back(escaped(next));
      line.remove_prefix(1);
    }
  }
  return false;
}

}  // namespace

Result<void> split_args(std::string_view line, std::vector<char>& storage,
                        std::vector<size_t>& sizes) {
  line = line.substr(0, line.find('\0'));
  for (;;) {
    while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
    if (line.empty()) return {};
    const size_t begin = storage.size();
    while (!line.empty() && !is_space(line.front())) {
      const char c = line.front();
      line.remove_prefix(1);
      if (c != '"' && c != '\'') {
        storage.push_back(c);
      } else if (!take_quoted(line, c, storage)) {
        return fail(Errc::kInvalid, "Protocol error: unbalanced quotes in request");
      }
    }
    sizes.push_back(storage.size() - begin);
  }
}

}  // namespace cairn::door::resp
