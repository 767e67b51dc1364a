// Functions over tensors, captured once and replayed: forward, gradients and updates become one
// plan whose state stays on the device. A call binds its inputs and runs; it builds no graph.
// Random numbers come from a stream of the function's own, drawn from generator() when it is
// compiled.
//
//   auto step = compile([&](const Tensor& x, const Tensor& y) {
//     Tensor loss = cross_entropy(model(x), y);
//     adamw.update(loss);
//     return loss;
//   });
//   for (...) step(x, y);
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <anneal/state.h>
#include <anneal/step.h>
#include <anneal/tensor.h>

namespace anneal {

// What an argument of a compiled function is called, and its sizes where they are not simply those
// of the first call: Variables in them are found from the tensors that are given.
struct NamedInput {
  std::string name;
  std::optional<Sizes> sizes = {};
  std::optional<DType> dtype = {};
};

struct CompileOptions {
  std::string name = "the compiled function";  // for messages and its state
  std::vector<NamedInput> inputs = {};         // by position; none: named input0, input1, ..
  // Captures twice and compares: a number of the host that would silently stay what it was at the
  // first call is an error that names its line.
  bool check = true;
  size_t most_plans = 16;  // for inputs of different shapes and dtypes; more are an error
};

// The untyped core of what compile() gives. Belongs to the thread that made it.
class CompiledFunction {
 public:
  using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  CompiledFunction(Function function, size_t inputs, CompileOptions options, Location where);
  ~CompiledFunction();
  CompiledFunction(CompiledFunction&&) noexcept;
  CompiledFunction& operator=(CompiledFunction&&) noexcept;

  // Results stay as they are until nobody holds them: a call may then reuse their memory.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, Location where = Location::current());
  // By name, in any order.
  std::vector<Tensor> run(const std::vector<std::pair<std::string, Tensor>>& inputs,
                          Location where = Location::current());

  size_t plan_count() const;  // captured so far
  // Results and updates of the last captured program, over inputs of these names: to look at it.
  std::vector<Tensor> program() const;

  // The last captured program as text for people, taken down to kernels of the current device once
  // more to see it. Empty before the first call.
  //   kernels()  each kernel, with the operations it comes from and the work it does; the memory a
  //              run takes; and every value that is stored between kernels, with the reason
  //   explain()  the compiler's passes in order: how long each took, what it changed, which rules
  //              fired in it how often, and the first rewrites of each with before and after
  std::string kernels() const;
  std::string explain() const;

  // Where its plans draw random numbers. With the states of the model and the optimizer it is all
  // that a run goes on from: see join().
  State state() const;

 protected:
  std::vector<Tensor> run_operands(const std::vector<const Operand*>& inputs);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

namespace detail {

template <typename R>
std::vector<Tensor> to_list(R&& results) {
  using Plain = std::remove_cvref_t<R>;
  if constexpr (std::is_same_v<Plain, Tensor>)
    return {std::forward<R>(results)};
  else if constexpr (std::is_same_v<Plain, std::vector<Tensor>>)
    return std::forward<R>(results);
  else
    return std::apply([](auto&&... each) { return std::vector<Tensor>{each...}; }, results);
}

template <typename R>
R from_list(std::vector<Tensor> list) {
  if constexpr (std::is_void_v<R>)
    return;
  else if constexpr (std::is_same_v<R, Tensor>)
    return std::move(list.at(0));
  else if constexpr (std::is_same_v<R, std::vector<Tensor>>)
    return list;
  else
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return R{std::move(list.at(I))...};
    }(std::make_index_sequence<std::tuple_size_v<R>>());
}

template <typename Signature>
struct Callable;
template <typename R, typename... Args>
struct Callable<std::function<R(Args...)>> {
  static_assert((std::is_same_v<std::remove_cvref_t<Args>, Tensor> && ...),
                "a function to compile takes tensors; other values would not change with the call");
  using Result = std::remove_cvref_t<R>;

  static CompiledFunction::Function wrap(std::function<R(Args...)> function) {
    return [function = std::move(function)](const std::vector<Tensor>& inputs) {
      return [&]<size_t... I>(std::index_sequence<I...>) -> std::vector<Tensor> {
        if constexpr (std::is_void_v<R>) {
          function(inputs[I]...);
          return {};
        } else {
          return to_list(function(inputs[I]...));
        }
      }(std::index_sequence_for<Args...>());
    };
  }
};

}  // namespace detail

// A compiled function with the arguments and the result of the one it was made from: a Tensor, a
// pair, tuple, array or vector of them, or nothing.
template <typename Signature>
class Compiled;
template <typename R, typename... Args>
class Compiled<std::function<R(Args...)>> : public CompiledFunction {
  using Traits = detail::Callable<std::function<R(Args...)>>;
  template <typename>
  using Input = Operand;  // to know the line of the call

 public:
  Compiled(std::function<R(Args...)> function, CompileOptions options, Location where)
      : CompiledFunction(Traits::wrap(std::move(function)), sizeof...(Args), std::move(options),
                         where) {}

  typename Traits::Result operator()(const Input<Args>&... inputs) {
    return detail::from_list<typename Traits::Result>(run_operands({&inputs...}));
  }
};

template <typename F>
auto compile(F function, CompileOptions options = {}, Location where = Location::current()) {
  using Signature = decltype(std::function(function));
  return Compiled<Signature>(Signature(std::move(function)), std::move(options), where);
}

}  // namespace anneal
