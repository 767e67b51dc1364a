// Data to train on: digits, texts, their order, and batches that are made ahead.
#include <algorithm>
#include <atomic>
#include <numeric>
#include <set>

#include <doctest/doctest.h>

#include <anneal/error.h>

#include "base/os/prefetch.h"
#include "io/data_images.h"
#include "io/data_random.h"
#include "io/data_text.h"

using namespace anneal;

TEST_CASE("data: drawn digits are the same for the same seed") {
  const io::Images a = io::drawn_digits(50, 3), b = io::drawn_digits(50, 3),
                   c = io::drawn_digits(50, 4);
  CHECK(a.pixels == b.pixels);
  CHECK(a.labels == b.labels);
  CHECK(a.pixels != c.pixels);
  // The first ones do not depend on how many follow.
  const io::Images more = io::drawn_digits(60, 3);
  CHECK(std::equal(a.pixels.begin(), a.pixels.end(), more.pixels.begin()));
}

TEST_CASE("data: drawn digits have ink and are all there") {
  const io::Images images = io::drawn_digits(500, 1);
  CHECK(std::set(images.labels.begin(), images.labels.end()).size() == 10);
  for (int64_t i = 0; i < images.count(); ++i) {
    const std::span<const uint8_t> image = images.image(i);
    const int64_t inked = std::ranges::count_if(image, [](uint8_t pixel) { return pixel > 128; });
    CAPTURE(int{images.labels[static_cast<size_t>(i)]});
    CHECK(inked > 15);
    CHECK(inked < 300);
  }
}

TEST_CASE("data: an epoch takes every image once, the next in another order") {
  io::Shuffle shuffle(100, 9);
  std::vector<int64_t> first, second;
  for (int64_t i = 0; i < 100; ++i) first.push_back(shuffle.at(i));
  for (int64_t i = 100; i < 200; ++i) second.push_back(shuffle.at(i));
  CHECK(first != second);
  // Any place can be asked for, in any order.
  CHECK(io::Shuffle(100, 9).at(150) == second[50]);
  CHECK(shuffle.at(7) == first[7]);
  for (auto* order : {&first, &second}) {
    std::ranges::sort(*order);
    std::vector<int64_t> all(100);
    std::iota(all.begin(), all.end(), 0);
    CHECK(*order == all);
  }
}

TEST_CASE("data: every text comes back from its tokens") {
  const std::vector<std::string> texts{"abc abc",
                                       "äöü €uro \U0001F600",
                                       "bare \xff\xc3 bytes \xe2\x82",
                                       "\xed\xa0\x80\xc0\x80",
                                       "line\nline\r\n\t",
                                       {"a\0b", 3}};
  for (const std::string& text : texts) {
    const io::Vocabulary vocabulary(text);
    std::string again;
    for (const int32_t token : vocabulary.encode(text)) again += vocabulary.decode(token);
    CHECK(again == text);
    CHECK(io::Vocabulary(vocabulary.characters()).encode(text) == vocabulary.encode(text));
  }
  CHECK(io::Vocabulary("häh").size() == 2);
  try {
    io::Vocabulary("abc").encode("abd");
    FAIL("an unknown character was taken");
  } catch (const UserError& error) {
    CHECK(std::string(error.what()).find("the character 'd'") != std::string::npos);
  }
  CHECK_THROWS_AS(io::Vocabulary(std::vector<int32_t>{3, 1}), UserError);
  CHECK_THROWS_AS(io::Vocabulary(std::vector<int32_t>{-3}), UserError);
}

TEST_CASE("data: the built-in text is enough to learn from") {
  CHECK(io::built_in_text().size() >= 20'000);
  CHECK(io::Vocabulary(io::built_in_text()).size() < 128);
}

TEST_CASE("data: batches come in order, made ahead, and failures come through") {
  std::atomic<int> made = 0;
  {
    Prefetch<int64_t> batches([&](int64_t i) { return ++made, i * i; }, 5, 1000, 3);
    for (int64_t i = 5; i < 50; ++i) CHECK(batches.next() == i * i);
  }
  CHECK(made <= 50);  // those taken, those waiting and one in the making
  Prefetch<int64_t> failing(
      [](int64_t i) { return i < 2 ? i : throw UserError("no more", "", {}); }, 0, 10);
  CHECK(failing.next() == 0);
  CHECK(failing.next() == 1);
  CHECK_THROWS_AS(failing.next(), UserError);
}
