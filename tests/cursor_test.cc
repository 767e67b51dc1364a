// The cursor under every text parser.
#include "base/cursor.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace anneal;
using namespace std::string_view_literals;

TEST_CASE("cursor: quoted text comes back whatever its bytes") {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const std::string quoted = quote(bytes);
  CHECK(std::all_of(quoted.begin(), quoted.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  Cursor cursor(quoted);
  CHECK(cursor.quoted(256) == bytes);
  CHECK(cursor.at_end());
  CHECK_FALSE(Cursor(quoted).quoted(255));
}

TEST_CASE("cursor: a failed cursor keeps its first error and gives nothing more") {
  Cursor cursor("ab\n 12x");
  CHECK(cursor.identifier() == "ab");
  cursor.advance();
  cursor.skip_blanks();
  CHECK(cursor.integer() == 12);
  CHECK_FALSE(cursor.expect("y"));
  CHECK_FALSE(cursor.accept('x'));
  CHECK(cursor.identifier().empty());
  CHECK_FALSE(cursor.integer());
  REQUIRE(cursor.failed());
  CHECK(cursor.error()->at.line == 2);
  CHECK(cursor.error()->at.column == 4);
  CHECK(cursor.error()->message == "expected 'y', found 'x'");
  cursor.advance(100);
  CHECK(cursor.at_end());
  CHECK(cursor.peek(7) == '\0');
}
