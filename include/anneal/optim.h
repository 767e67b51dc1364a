// Optimizers as graph. Moments, counters and scales are parameters of their own, an update is a
// list of changes that joins the step being built, and the learning rate is computed from the
// counter: a step that was compiled once can be replayed for a whole run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <anneal/nn.h>
#include <anneal/state.h>
#include <anneal/tensor.h>

namespace anneal::optim {

// ---- Learning rates

// A function from the number of updates done so far (0, 1, ..; a float scalar) to a scalar.
class Schedule {
 public:
  using Function = std::function<Tensor(const Tensor& step)>;
  Schedule(double rate,  // NOLINT(google-explicit-constructor): constant
           Location where = Location::current());
  explicit Schedule(Function function) : function_(std::move(function)) {}  // in the graph

  Tensor operator()(const Tensor& step) const { return function_(step); }

 private:
  Function function_;
};
// From `first` to `last` in `steps` updates, then `last`.
Schedule linear(double first, double last, int64_t steps);
// Half a cosine from `first` to `last` in `steps` updates, then `last`.
Schedule cosine(double first, double last, int64_t steps);
// Rises to what `then` starts with, which it reaches with the last of `steps` updates.
Schedule warm_up(int64_t steps, Schedule then);
// Times `factor` after every `every` updates.
Schedule staircase(double first, double factor, int64_t every);
// Times `factor` at each of the milestones.
Schedule multi_step(double first, double factor, std::vector<int64_t> milestones);
// A function of the host for the first `steps` updates, its last value from then on. It is called
// here and kept as a table on the device, so that a step needs nothing from the host.
Schedule table(const std::function<double(int64_t step)>& function, int64_t steps);

// ---- What is done to gradients before the rule sees them

// Losses are multiplied by a scale that halves when gradients are not finite and doubles after
// `patience` updates without that: small gradients do not vanish in 16 bits.
struct LossScale {
  double initial = 65536, growth = 2, backoff = 0.5;
  int64_t patience = 2000;
};
struct GradientOptions {
  double clip_norm = 0;                      // of all gradients together; 0: as they are
  bool skip_non_finite = false;              // such an update changes nothing
  std::optional<LossScale> loss_scale = {};  // implies skip_non_finite
  bool accumulate = false;                   // memory for accumulate()
};

// Parameters that are treated otherwise. The first group that takes a parameter counts.
struct Group {
  nn::Filter filter;
  double rate = 1;                          // times the learning rate
  std::optional<double> weight_decay = {};  // instead of the optimizer's
};
// Norms and biases: what weight decay usually leaves alone.
bool is_vector(const nn::Parameter& parameter);

// ---- Optimizers

class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Records gradients of the loss and the update with the open step.
  void update(const Tensor& loss, Location where = Location::current());
  // The same as assignments to evaluate.
  std::vector<Tensor> updates(const Tensor& loss, Location where = Location::current());
  // With gradients that were computed otherwise, one for each of parameters().
  void apply(const std::vector<Tensor>& gradients, Location where = Location::current());

  // Records that gradients of the loss are added to those kept; with update_accumulated(), an
  // update by their mean, after which none are kept. For optimizers made with gradients.accumulate.
  // Before anything was accumulated it is an error; where none are kept when it runs, it changes
  // nothing.
  void accumulate(const Tensor& loss, Location where = Location::current());
  void update_accumulated(Location where = Location::current());

  const std::vector<nn::Parameter>& parameters() const { return parameters_; }
  Tensor steps() const { return steps_; }  // how many updates were done, i32
  Tensor learning_rate(Location where = Location::current()) const;  // of the next update
  Tensor skipped() const { return skipped_; }  // updates that changed nothing; empty if none can

  // Counters, moments, scales, kept gradients: with the model's, all that a run goes on from.
  const State& state() const { return state_; }
  void load(const State& from, const LoadOptions& options = {},
            Location where = Location::current());

 protected:
  struct Values {
    Tensor value;                 // of the parameter
    std::vector<Tensor> moments;  // in the order of their names
  };
  struct Settings {
    Tensor rate;   // learning rate, of the parameter's dtype
    Tensor count;  // of updates with this one, in the dtype of the scalars
    double weight_decay;
  };
  Optimizer(std::string name, std::vector<nn::Parameter> parameters, Schedule rate,
            double weight_decay, std::vector<Group> groups, const GradientOptions& gradients,
            const std::vector<std::string>& moments, Location where);
  // The rule of one parameter, elementwise, so that those of all parameters fuse. Its value follows
  // from the moments as they are stored: then one kernel makes them all.
  virtual std::vector<Tensor> next_moments(const Values& now, const Tensor& gradient,
                                           const Settings& settings) const = 0;
  virtual Tensor next_value(const Values& now, const Tensor& gradient,
                            const std::vector<Tensor>& moments, const Settings& settings) const = 0;

 private:
  struct Slot {
    Tensor master;  // in f32, of a parameter with fewer bits; else the parameter itself
    std::vector<Tensor> moments;
    Tensor kept;  // accumulated gradient
    double rate, weight_decay;
  };
  Tensor add_state(std::string path, const Sizes& sizes, const nn::Init& init, DType dtype);
  Tensor add_scalar(const char* name, double value, DType dtype);
  std::vector<Tensor> gradients_of(const Tensor& loss) const;
  void record_update(const std::vector<Tensor>& gradients, Tensor factor, const Tensor& some = {});
  void record_scale(const Tensor& finite);

  std::string name_;
  std::vector<nn::Parameter> parameters_;
  Schedule rate_;
  GradientOptions options_;
  DType scalars_;  // f64 if some parameter is, else f32
  State state_;
  Tensor steps_, skipped_, scale_, good_steps_, kept_count_;
  std::vector<Slot> slots_;
  bool may_have_kept_ = false;  // accumulate() was recorded, or kept gradients loaded
};

// Trainable parameters of a module; a list may be given instead.
class Parameters {
 public:
  Parameters(const nn::Module& module);               // NOLINT(google-explicit-constructor)
  Parameters(std::vector<nn::Parameter> parameters);  // NOLINT(google-explicit-constructor)
  Parameters(const std::vector<Tensor>& parameters);  // NOLINT(google-explicit-constructor)
  std::vector<nn::Parameter> list;
};

struct SgdOptions {
  Schedule lr = 1e-2;
  double momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
  std::vector<Group> groups = {};
  GradientOptions gradients = {};
};
class Sgd : public Optimizer {
 public:
  explicit Sgd(const Parameters& parameters, const SgdOptions& options = {},
               Location where = Location::current());

 protected:
  std::vector<Tensor> next_moments(const Values& now, const Tensor& gradient,
                                   const Settings& settings) const override;
  Tensor next_value(const Values& now, const Tensor& gradient, const std::vector<Tensor>& moments,
                    const Settings& settings) const override;

 private:
  double momentum_, dampening_;
  bool nesterov_;
};

struct AdamOptions {
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;  // added to the gradient
  std::vector<Group> groups = {};
  GradientOptions gradients = {};
};
struct AdamWOptions {
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0.01;  // of the parameter itself
  std::vector<Group> groups = {};
  GradientOptions gradients = {};
};
class Adam : public Optimizer {
 public:
  explicit Adam(const Parameters& parameters, const AdamOptions& options = {},
                Location where = Location::current());

 protected:
  Adam(const Parameters& parameters, const AdamWOptions& options, Location where);
  std::vector<Tensor> next_moments(const Values& now, const Tensor& gradient,
                                   const Settings& settings) const override;
  Tensor next_value(const Values& now, const Tensor& gradient, const std::vector<Tensor>& moments,
                    const Settings& settings) const override;

 private:
  double beta1_, beta2_, epsilon_;
  bool decoupled_;  // decay of the parameter itself
};
class AdamW : public Adam {
 public:
  explicit AdamW(const Parameters& parameters, const AdamWOptions& options = {},
                 Location where = Location::current())
      : Adam(parameters, options, where) {}
};

struct LionOptions {
  Schedule lr = 1e-4;
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  std::vector<Group> groups = {};
  GradientOptions gradients = {};
};
class Lion : public Optimizer {
 public:
  explicit Lion(const Parameters& parameters, const LionOptions& options = {},
                Location where = Location::current());

 protected:
  std::vector<Tensor> next_moments(const Values& now, const Tensor& gradient,
                                   const Settings& settings) const override;
  Tensor next_value(const Values& now, const Tensor& gradient, const std::vector<Tensor>& moments,
                    const Settings& settings) const override;

 private:
  double beta1_, beta2_;
};

struct EmaOptions {
  // Whether buffers of a model that are floats (running statistics) are averaged, too. Others, and
  // all of them without it, are copied as they are.
  bool average_buffers = false;
};
// A running average of parameters: average * decay + parameter * (1 - decay) after each update.
class Ema {
 public:
  // Of a whole model: its parameters, and its buffers along with them.
  Ema(const nn::Module& model, double decay, const EmaOptions& options = {},
      Location where = Location::current());
  Ema(const Parameters& parameters, double decay, Location where = Location::current());
  // Records it with the open step, after the optimizer's update.
  void update(Location where = Location::current());
  // The averages under the paths of the model: another.load(ema.state()) takes them over.
  const State& state() const { return averages_; }

 private:
  struct Source {
    Tensor tensor;
    bool averaged;  // else copied
  };
  void add(const std::string& path, const Tensor& tensor, bool averaged);

  std::vector<Source> sources_;
  State averages_;
  double decay_;
};

// ---- Gradients by hand

// The root of the sum of all squares, in f32 at least.
Tensor global_norm(const std::vector<Tensor>& gradients, Location where = Location::current());
// Scaled so that the global norm is at most `norm`.
std::vector<Tensor> clip_by_norm(const std::vector<Tensor>& gradients, double norm,
                                 Location where = Location::current());

}  // namespace anneal::optim
