// anneal bench compiler: figures of the compiler itself, each beside its goal.
#pragma once

namespace anneal::cli {

// False when something that must work did not; a missed goal is no failure.
bool bench_compiler(bool json);

}  // namespace anneal::cli
