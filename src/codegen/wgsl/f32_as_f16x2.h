// f32 rounded to f16 for units that multiply matrices, as the adapter does it, two at once where
// two follow each other. (Elsewhere f16 is made of integers: WGSL says little about rounding.)
#pragma once

#include <string>
#include <vector>

#include "kernel/program/program.h"

namespace anneal::wgsl {

class Halves {
 public:
  // `used`: otherwise there are none.
  Halves(const Program& program, bool used);

  // Whether an instruction makes one.
  bool makes(size_t at) const;
  // The operand of the one that is made together with it; none: it is made alone, or was made.
  ValueId partner(size_t at) const;
  bool is_made(size_t at) const { return !of_[at].word.empty(); }
  // A word of both, of which it takes the name.
  std::string make(size_t at, const std::string& word, const std::string& first,
                   const std::string& second);

  // Of one that is made; "" of what is none.
  std::string code(size_t at) const;     // its bits, below zeros
  std::string widened(size_t at) const;  // as f32
  std::string f16(size_t at) const;      // as f16

 private:
  struct Half {
    std::string word;
    bool upper = false;
  };
  std::string part(size_t at, const char* function) const;

  const Program& program_;
  std::vector<Half> of_;
  std::vector<bool> is_widened_;
  bool used_;
};

}  // namespace anneal::wgsl
