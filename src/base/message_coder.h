// SPDX-License-Identifier: Apache-2.0
// Messages made of fields: a layout names the fields of each struct once, and they are written and
// read by it.
//
//   template <class Coder>
//   struct Layout {
//     Coder& coder;
//     void operator()(Point& v) { fields(coder, v.x, v.y); }
//   };
//   std::string bytes = encode_message<Layout>(point);
//   std::optional<Point> point = decode_message<Layout, Point>(bytes);    // none: no such message
//
// Numbers are little-endian, as wide as they are; a flag is a byte; texts and lists begin with
// their count, of four bytes; what may be missing begins with a flag. There is one form for each
// value, so that what is understood is the same when it is written again.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/field_coder.h"
#include "base/ids.h"
#include "base/units.h"

namespace cairn {

template <template <class> class Layout>
class MessageWriter : public FieldWriter {
 public:
  static constexpr bool kReads = false;
  template <class T>
  void visit(T& value) {
    Layout<MessageWriter>{*this}(value);
  }
};

// Bytes from strangers.
template <template <class> class Layout>
class MessageReader : public FieldReader {
 public:
  static constexpr bool kReads = true;
  using FieldReader::FieldReader;
  template <class T>
  void visit(T& value) {
    Layout<MessageReader>{*this}(value);
  }
};

// A value by way of another type, which may have values that mean nothing: `to` says so.
template <class Wire, class Coder, class T, class From, class To>
void convert(Coder& coder, T& value, From from, To to) {
  if constexpr (Coder::kReads) {
    Wire wire = 0;
    coder.number(wire);
    if (!to(wire, value)) coder.spoil();
  } else {
    coder.number(static_cast<Wire>(from(value)));
  }
}

// A choice, as a byte; those behind the last one mean nothing.
template <class Coder, class Choice>
void choice(Coder& coder, Choice& value, Choice first, Choice last) {
  convert<uint8_t>(
      coder, value, [](Choice one) { return static_cast<uint8_t>(one); },
      [first, last](uint8_t wire, Choice& one) {
        one = static_cast<Choice>(wire);
        return wire >= static_cast<uint8_t>(first) && wire <= static_cast<uint8_t>(last);
      });
}

template <class Coder, std::integral T>
void field(Coder& coder, T& value) {
  coder.number(value);
}
template <class Coder>
void field(Coder& coder, bool& value) {
  convert<uint8_t>(
      coder, value, [](bool is) { return is ? 1 : 0; },
      [](uint8_t wire, bool& is) { return is = wire == 1, wire <= 1; });
}
template <class Coder>
void field(Coder& coder, std::string& value) {
  coder.text(value);
}
template <class Coder, class Tag, class Rep>
void field(Coder& coder, Id<Tag, Rep>& value) {
  convert<Rep>(
      coder, value, [](const Id<Tag, Rep>& id) { return id.value(); },
      [](Rep wire, Id<Tag, Rep>& id) { return id = Id<Tag, Rep>(wire), true; });
}
template <class Coder>
void field(Coder& coder, Duration& value) {
  convert<uint64_t>(
      coder, value, [](Duration time) { return time.ns; },
      [](uint64_t wire, Duration& time) { return time.ns = static_cast<int64_t>(wire), true; });
}
// All else the layout knows.
template <class Coder, class T>
  requires(!std::integral<T>)
void field(Coder& coder, T& value) {
  coder.visit(value);
}
template <class Coder, class T>
void field(Coder& coder, std::optional<T>& value) {
  bool is_there = value.has_value();
  field(coder, is_there);
  if constexpr (Coder::kReads) {
    if (is_there) value.emplace();
  }
  if (value) field(coder, *value);
}
template <class Coder, class T>
void field(Coder& coder, std::vector<T>& value) {
  auto count = static_cast<uint32_t>(value.size());
  coder.number(count);
  if constexpr (Coder::kReads) {
    // Element by element: a count that is not true ends with the bytes.
    for (uint32_t i = 0; i < count && coder.is_good(); ++i) field(coder, value.emplace_back());
  } else {
    for (T& element : value) field(coder, element);
  }
}

template <class Coder, class... Fields>
void fields(Coder& coder, Fields&... each) {
  (field(coder, each), ...);
}

template <template <class> class Layout, class T>
std::string encode_message(T value) {
  MessageWriter<Layout> body;
  field(body, value);
  return std::move(body.out);
}
template <template <class> class Layout, class T>
std::optional<T> decode_message(Bytes body) {
  T value;
  MessageReader<Layout> reader(body);
  field(reader, value);
  if (!reader.is_over()) return std::nullopt;
  return value;
}

// One of several kinds of messages. Which one it is, its bytes do not say.
template <template <class> class Layout, class Variant>
std::string encode_one_of(const Variant& variant) {
  return std::visit([](const auto& value) { return encode_message<Layout>(value); }, variant);
}
template <template <class> class Layout, class Variant>
std::optional<Variant> decode_one_of(size_t index, Bytes body) {
  return [&]<size_t... each>(std::index_sequence<each...>) {
    std::optional<Variant> found;
    const auto take = [&]<size_t at>(std::integral_constant<size_t, at>) {
      using Kind = std::variant_alternative_t<at, Variant>;
      std::optional<Kind> value = decode_message<Layout, Kind>(body);
      if (value) found.emplace(std::in_place_index<at>, std::move(*value));
    };
    (void)((index == each ? (take(std::integral_constant<size_t, each>()), true) : false) || ...);
    return found;
  }(std::make_index_sequence<std::variant_size_v<Variant>>());
}

}  // namespace cairn
