#include "cli/json.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace anneal::cli {

// Bytes that are no UTF-8 become replacement characters: the text is always valid JSON.
Json::Json(std::string_view value)
    : text_(nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) {}

Json::Json(double value) : text_(nlohmann::json(value).dump()) {}

void Json::append(std::string_view item) {
  const char close = text_.back();
  text_.pop_back();
  if (text_.size() > 1) text_ += ',';
  text_ += item;
  text_ += close;
}

Json& Json::add(const Json& value) {
  append(value.text_);
  return *this;
}

Json& Json::set(std::string_view key, const Json& value) {
  append(Json(key).text_ + ':' + value.text_);
  return *this;
}

}  // namespace anneal::cli
