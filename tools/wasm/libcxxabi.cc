// What Debian's libc++abi for wasm32 lacks, which is built without exceptions. The unwinder is the
// engine's own; what is here makes exceptions, finds the handler among those of a landing pad (the
// table that clang writes is that of the Itanium ABI) and keeps count of who handles what. For one
// thread, without exception_ptr.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <typeinfo>

namespace __cxxabiv1 {

// The virtual functions of libc++abi's type_info, in its order.
class __shim_type_info : public std::type_info {
 public:
  virtual ~__shim_type_info();
  virtual void noop1() const;
  virtual void noop2() const;
  virtual bool can_catch(const __shim_type_info* thrown, void*& adjusted) const = 0;
};

}  // namespace __cxxabiv1

namespace {

using __cxxabiv1::__shim_type_info;

// What the engine carries: a pointer to one of these.
struct alignas(16) UnwindHeader {
  uint64_t exception_class;
  void (*cleanup)(int, UnwindHeader*);
  uintptr_t unused[2];
};

// Before every thrown object.
struct Exception {
  const std::type_info* type;
  void* (*destroy)(void*);
  Exception* next_caught;
  int handlers;  // below 0: it is thrown again
  void* adjusted;
  UnwindHeader unwind;
};

constexpr uint64_t kClass = 0x574153454b45482b;
// The index of the tag of C++'s exceptions.
#define CPP_EXCEPTION 0

Exception* caught = nullptr;  // the innermost first
unsigned uncaught = 0;

Exception* exception_of(void* unwind) {
  return reinterpret_cast<Exception*>(static_cast<char*>(unwind) - offsetof(Exception, unwind));
}
Exception* exception_at(void* object) { return static_cast<Exception*>(object) - 1; }
void* object_of(Exception* exception) { return exception + 1; }

// Numbers of seven bits a byte.
struct Leb128 {
  uintptr_t value;  // without its sign
  unsigned bits;    // that were read
  bool negative;    // where it has a sign
};

Leb128 read_leb128(const uint8_t*& at) {
  Leb128 number{};
  uint8_t byte = 0;
  do {
    byte = *at++;
    number.value |= static_cast<uintptr_t>(byte & 0x7f) << number.bits;
    number.bits += 7;
  } while (byte & 0x80);
  number.negative = byte & 0x40;
  return number;
}

uintptr_t read_unsigned(const uint8_t*& at) { return read_leb128(at).value; }

intptr_t read_signed(const uint8_t*& at) {
  const Leb128 number = read_leb128(at);
  const bool extended = number.negative && number.bits < sizeof(number.value) * 8;
  return static_cast<intptr_t>(extended ? number.value | ~uintptr_t{0} << number.bits
                                        : number.value);
}

enum Answer { kHandlerFound = 6, kContinueUnwind = 8 };

// The table of one function: for each landing pad its first action, then the actions, then types.
struct Handlers {
  const uint8_t* types = nullptr;
  const uint8_t* call_sites = nullptr;
  const uint8_t* actions = nullptr;

  explicit Handlers(const uint8_t* table) {
    constexpr uint8_t kOmitted = 0xff;
    if (*table++ != kOmitted) read_unsigned(table);  // where landing pads begin
    if (*table++ != kOmitted) {
      const uintptr_t offset = read_unsigned(table);
      types = table + offset;
    }
    ++table;  // the encoding of call sites
    const uintptr_t length = read_unsigned(table);
    call_sites = table;
    actions = table + length;
  }

  // Null where the landing pad has none.
  const uint8_t* first_action(uintptr_t landing_pad) const {
    const uint8_t* at = call_sites;
    for (uintptr_t i = 0; at < actions; ++i) {
      read_unsigned(at);
      const uintptr_t action = read_unsigned(at);
      if (i == landing_pad) return action == 0 ? nullptr : actions + action - 1;
    }
    return nullptr;
  }

  const __shim_type_info* type(intptr_t selector) const {
    uintptr_t address = 0;
    std::memcpy(&address, types - selector * static_cast<intptr_t>(sizeof(address)),
                sizeof(address));
    return reinterpret_cast<const __shim_type_info*>(address);
  }
};

}  // namespace

extern "C" {

// Filled and read by the code that clang makes for landing pads.
struct LandingPad {
  uintptr_t index;
  const uint8_t* table;
  uintptr_t selector;
};
thread_local LandingPad __wasm_lpad_context;

int _Unwind_CallPersonality(void* unwind) {
  LandingPad& pad = __wasm_lpad_context;
  pad.selector = 0;
  if (!pad.table) return kContinueUnwind;
  Exception* exception = exception_of(unwind);
  const Handlers handlers(pad.table);
  const uint8_t* action = handlers.first_action(pad.index);
  while (action) {
    const intptr_t selector = read_signed(action);
    if (selector > 0) {
      void* adjusted = object_of(exception);
      const __shim_type_info* type = handlers.type(selector);
      if (!type ||
          type->can_catch(static_cast<const __shim_type_info*>(exception->type), adjusted)) {
        exception->adjusted = adjusted;
        pad.selector = static_cast<uintptr_t>(selector);
        return kHandlerFound;
      }
    } else if (selector < 0) {  // a function that throws nothing
      exception->adjusted = object_of(exception);
      pad.selector = static_cast<uintptr_t>(selector);
      return kHandlerFound;
    }
    const uint8_t* at = action;
    const intptr_t next = read_signed(at);
    action = next == 0 ? nullptr : action + next;
  }
  return kContinueUnwind;
}

void* __cxa_allocate_exception(size_t size) noexcept {
  void* memory = std::calloc(1, sizeof(Exception) + size);
  if (!memory) std::terminate();
  return object_of(static_cast<Exception*>(memory));
}

void __cxa_free_exception(void* object) noexcept { std::free(exception_at(object)); }

[[noreturn]] void __cxa_throw(void* object, std::type_info* type, void* (*destroy)(void*)) {
  Exception* exception = exception_at(object);
  exception->type = type;
  exception->destroy = destroy;
  exception->unwind.exception_class = kClass;
  ++uncaught;
  __builtin_wasm_throw(CPP_EXCEPTION, &exception->unwind);
}

void* __cxa_get_exception_ptr(void* unwind) noexcept { return exception_of(unwind)->adjusted; }

void* __cxa_begin_catch(void* unwind) noexcept {
  Exception* exception = exception_of(unwind);
  exception->handlers = exception->handlers < 0 ? 1 - exception->handlers : exception->handlers + 1;
  if (caught != exception) {
    exception->next_caught = caught;
    caught = exception;
  }
  --uncaught;
  return exception->adjusted ? exception->adjusted : object_of(exception);
}

void __cxa_end_catch() {
  Exception* exception = caught;
  if (!exception) return;
  if (exception->handlers < 0) {
    if (++exception->handlers == 0) caught = exception->next_caught;
  } else if (--exception->handlers == 0) {
    caught = exception->next_caught;
    if (exception->destroy) exception->destroy(object_of(exception));
    std::free(exception);
  }
}

[[noreturn]] void __cxa_rethrow() {
  Exception* exception = caught;
  if (!exception) std::terminate();
  exception->handlers = -exception->handlers;
  ++uncaught;
  __builtin_wasm_throw(CPP_EXCEPTION, &exception->unwind);
}

[[noreturn]] void _Unwind_Resume(void* unwind) { __builtin_wasm_throw(CPP_EXCEPTION, unwind); }
void _Unwind_DeleteException(void*) {}

// Named in tables, never called: landing pads call _Unwind_CallPersonality.
int __gxx_wasm_personality_v0(...) { return kContinueUnwind; }

std::type_info* __cxa_current_exception_type() {
  return caught ? const_cast<std::type_info*>(caught->type) : nullptr;
}

// The one thread ends with the process.
int __cxa_atexit(void (*destroy)(void*), void* object, void* library);
int __cxa_thread_atexit(void (*destroy)(void*), void* object, void* library) {
  return __cxa_atexit(destroy, object, library);
}

// Debian's libraries are built with a stack protector.
uintptr_t __stack_chk_guard = 0x6b2f11e3;
[[noreturn]] void __stack_chk_fail() { __builtin_trap(); }

}  // extern "C"
