// SPDX-License-Identifier: Apache-2.0
#include "door/resp/reply.h"

#include <array>
#include <charconv>

#include "door/resp/wire_format.h"

namespace cairn::door::resp {

void Reply::header(char marker, int64_t number) {
  std::array<char, 24> text;
  text[0] = marker;
  char* end = std::to_chars(text.data() + 1, text.data() + text.size() - 2, number).ptr;
  *end++ = '\r';
  *end++ = '\n';
  bytes.append(text.data(), end);
}

void Reply::status(std::string_view text) {
  bytes += static_cast<char>(Marker::kStatus);
  bytes += text;
  bytes += kLineEnd;
}

void Reply::error(std::string_view text) {
  ++errors;
  bytes += static_cast<char>(Marker::kError);
  for (const char c : text) bytes += c == '\r' || c == '\n' ? ' ' : c;
  bytes += kLineEnd;
}

void Reply::integer(int64_t value) { header(static_cast<char>(Marker::kInteger), value); }

void Reply::bulk(std::string_view text) {
  header(static_cast<char>(Marker::kBulk), static_cast<int64_t>(text.size()));
  bytes += text;
  bytes += kLineEnd;
}

void Reply::null() { bytes += protocol == 2 ? "$-1\r\n" : "_\r\n"; }

void Reply::null_array() { bytes += protocol == 2 ? "*-1\r\n" : "_\r\n"; }

void Reply::array(size_t count) {
  header(static_cast<char>(Marker::kArray), static_cast<int64_t>(count));
}

void Reply::map(size_t count) {
  if (protocol == 2) return array(2 * count);
  header(static_cast<char>(Marker::kMap), static_cast<int64_t>(count));
}

void Reply::set(size_t count) {
  if (protocol == 2) return array(count);
  header(static_cast<char>(Marker::kSet), static_cast<int64_t>(count));
}

void Reply::push(size_t count) {
  if (protocol == 2) return array(count);
  header(static_cast<char>(Marker::kPush), static_cast<int64_t>(count));
}

void Reply::boolean(bool value) {
  if (protocol == 2) return integer(value ? 1 : 0);
  bytes += value ? "#t\r\n" : "#f\r\n";
}

void Reply::real(std::string_view text) {
  if (protocol == 2) return bulk(text);
  bytes += static_cast<char>(Marker::kReal);
  bytes += text;
  bytes += kLineEnd;
}

void Reply::big_number(std::string_view digits) {
  if (protocol == 2) return bulk(digits);
  bytes += static_cast<char>(Marker::kBigNumber);
  bytes += digits;
  bytes += kLineEnd;
}

void Reply::verbatim(std::string_view format, std::string_view text) {
  if (protocol == 2) return bulk(text);
  header(static_cast<char>(Marker::kVerbatim), static_cast<int64_t>(text.size() + 4));
  bytes += format;
  bytes += ':';
  bytes += text;
  bytes += kLineEnd;
}

}  // namespace cairn::door::resp
