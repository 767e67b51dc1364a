// Memory for code made by this process: writable first, then executable, never both.
// Must not know what is in it.
#pragma once

#include <cstddef>

namespace anneal {

// Fresh pages, writable; null where there are none.
std::byte* map_writable(size_t bytes);
// Readable and executable from now on; false where the system does not allow it.
bool make_executable(std::byte* memory, size_t bytes);
void unmap(std::byte* memory, size_t bytes);

}  // namespace anneal
