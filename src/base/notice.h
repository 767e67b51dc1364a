// What a user should know although everything goes on: said once, by whoever runs the program. The
// library itself never prints.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace anneal {

// Any thread may call it.
using NoticeReader = std::function<void(std::string_view what, std::string_view hint)>;
// Who gets notices from now on; none: they are dropped, as they are at first.
void read_notices(NoticeReader reader);

// A sentence in lower case without its end, and what to do.
void notice(std::string_view what, std::string_view hint);

}  // namespace anneal
