// SPDX-License-Identifier: Apache-2.0
// Reply: answers as bytes, in the version of the protocol that their client speaks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::door::resp {

// Bytes are appended; an array, map or set is followed by as many answers as it says.
struct Reply {
  std::string bytes;
  int protocol = 2;  // or 3

  void status(std::string_view text);
  void ok() { status("OK"); }
  // "ERR what", with a code of capitals. Line ends in it become spaces.
  void error(std::string_view text);
  void integer(int64_t value);
  void bulk(std::string_view text);
  void null();
  // Where the second version has a null of its own for arrays.
  void null_array();
  void array(size_t count);
  // `count` pairs.
  void map(size_t count);
  void set(size_t count);
  void push(size_t count);
  void boolean(bool value);
  void real(std::string_view text);
  void big_number(std::string_view digits);
  // Text of a format of three letters: "txt", "mkd".
  void verbatim(std::string_view format, std::string_view text);

  // How many errors were appended.
  uint64_t errors = 0;

 private:
  void header(char marker, int64_t number);
};

// How far a reply was; what came after it can be taken back.
class ReplyMark {
 public:
  explicit ReplyMark(const Reply& reply) : bytes_(reply.bytes.size()), errors_(reply.errors) {}
  void restore(Reply& reply) const {
    reply.bytes.resize(bytes_);
    reply.errors = errors_;
  }

 private:
  size_t bytes_;
  uint64_t errors_;
};

}  // namespace cairn::door::resp
