// Accesses of a thread to four neighbours become one, and memory that is best taken so becomes
// memory of vectors: of four words, or where elements are narrow of the two words or the one that
// hold four of them.
#pragma once

#include "kernel/gpu/argument_memory.h"
#include "kernel/program/program.h"

namespace anneal {

// Loads or stores of one block of straight code at places that follow each other, the first of
// which is a multiple of four. Buffers are made of vectors where some accesses are wide and no
// store is to a part of one, so that no two threads ever store to a word; of buffers that are the
// same memory, all or none.
void widen_accesses(Program& program, const ArgumentMemory& memory);

}  // namespace anneal
