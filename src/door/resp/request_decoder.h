// SPDX-License-Identifier: Apache-2.0
// RequestDecoder: a client's bytes, in pieces of any size, as requests. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace cairn::door::resp {

// The words of a request; there is at least one. They point into `storage`, or into the bytes that
// the decoder was given where the whole request was there. Moving it moves the words.
struct RequestArgs {
  std::vector<std::string_view> args;
  std::vector<char> storage;

  RequestArgs() = default;
  RequestArgs(RequestArgs&&) = default;
  RequestArgs& operator=(RequestArgs&&) = default;
  RequestArgs(const RequestArgs&) = delete;
  RequestArgs& operator=(const RequestArgs&) = delete;
};

// Both forms: arrays of bulk strings, and lines that somebody types. Memory is taken for bytes that
// have arrived, whatever was announced.
class RequestDecoder {
 public:
  // Takes from the front of `bytes`. True: `into` is the next request. False: all bytes were taken,
  // and more are needed. An error is final: the stream makes no sense any more; problem() says it
  // to the client. kInvalid: it is no RESP; kLimit: too much of something.
  Result<bool> take(std::string_view& bytes, RequestArgs& into);
  // "Protocol error: expected '$', got 'x'".
  static std::string problem(const Error& error);

  // Of a client that has not shown its password, only small requests are taken.
  void set_stranger(bool is_stranger) { is_stranger_ = is_stranger; }
  // In the middle of a request.
  bool is_partial() const { return state_ != State::kStart; }
  // What it keeps of a request that is not whole yet.
  size_t held() const { return storage_.capacity() + line_.capacity() + parts_.capacity(); }

 private:
  enum class State : uint8_t { kStart, kInline, kCount, kBulkSize, kBulk, kBulkEnd };
  // A word: where it is, or once words are kept in storage_ at which offset.
  struct Part {
    const char* data = nullptr;
    size_t offset = 0;
    size_t size = 0;
  };

  // One more step; kMore: bytes are missing.
  enum class Step : uint8_t { kGoOn, kMore, kDone };
  Result<Step> step(std::string_view& bytes);
  Result<Step> take_inline(std::string_view& bytes);
  Result<Step> take_count(std::string_view& bytes);
  Result<Step> take_bulk_size(std::string_view& bytes);
  Step take_bulk(std::string_view& bytes);
  // The next line without its end, valid until the next call. False: it is not whole yet.
  Result<bool> take_line(std::string_view& bytes, std::string_view& line, const char* too_long);
  Step end_bulk();
  // Words that are in others' memory move to storage_.
  void keep_parts();
  void finish(RequestArgs& into);

  State state_ = State::kStart;
  bool is_stranger_ = false;
  bool is_kept_ = false;       // the words are in storage_
  bool is_line_over_ = false;  // line_ was given out
  bool is_word_open_ = false;  // the last part is being received
  uint64_t args_left_ = 0;
  uint64_t bulk_left_ = 0;
  uint64_t bytes_ = 0;  // of the request, as announced
  std::string line_;    // its begin, when the rest has not arrived
  std::vector<Part> parts_;
  std::vector<char> storage_;
};

// A line that somebody typed as words, in quotes or not, as redis-cli and Redis take them. Appends
// the words' bytes to `storage` and their sizes to `sizes`. kInvalid: quotes that do not match.
Result<void> split_args(std::string_view line, std::vector<char>& storage,
                        std::vector<size_t>& sizes);

}  // namespace cairn::door::resp
