#include <napi.h>

#include <cstdlib>

#include "engine.h"

namespace skein {
namespace {

void deliver(Napi::Env env, Napi::Function answer, struct JavaScriptThread* thread, void*);

/**
 * A JavaScript thread that has opened MPI. Its responses are delivered through one thread-safe function. If the thread
 * calls MPI itself, responses wait until the thread fetches them.
 */
struct JavaScriptThread : Client {
  bool isCaller = false;
  using Wake = Napi::TypedThreadSafeFunction<JavaScriptThread, void, deliver>;
  Wake function;
  /** Number of responses that the thread waits for. While it is positive, the event loop of the thread stays alive. */
  size_t waiting = 0;

 protected:
  void wake() override {
    if (!isCaller) function.NonBlockingCall();
  }
};

using ThreadSlot = std::shared_ptr<JavaScriptThread>;

/** Modes in which a JavaScript thread has opened MPI: with a callback, to call MPI itself, or both. */
struct OpenThread {
  ThreadSlot called;
  ThreadSlot caller;
};

OpenThread& openThreadOf(Napi::Env env) {
  if (env.GetInstanceData<OpenThread>() == nullptr) env.SetInstanceData(new OpenThread());
  return *env.GetInstanceData<OpenThread>();
}

/** Returns an array of responses: [id, outcome, message, values, id, …]. */
Napi::Array batchOf(Napi::Env env, const std::vector<Completion>& completions) {
  Napi::Array batch = Napi::Array::New(env, completions.size() * 4);
  uint32_t at = 0;
  for (const Completion& completion : completions) {
    batch[at++] = Napi::Number::New(env, completion.id);
    batch[at++] = Napi::Number::New(env, static_cast<int>(completion.outcome));
    batch[at++] = completion.message.empty() ? env.Undefined() : Napi::String::New(env, completion.message);
    Napi::Value values = env.Undefined();
    if (!completion.values.empty()) {
      Napi::Array list = Napi::Array::New(env, completion.values.size());
      for (size_t i = 0; i < completion.values.size(); i++) list[static_cast<uint32_t>(i)] = Napi::Number::New(env, completion.values[i]);
      values = list;
    }
    batch[at++] = values;
  }
  return batch;
}

void deliver(Napi::Env env, Napi::Function answer, JavaScriptThread* thread, void*) {
  if (env == nullptr) return;
  const std::vector<Completion> completions = thread->take();
  thread->waiting -= completions.size();
  if (thread->waiting == 0) thread->function.Unref(env);
  answer.Call({batchOf(env, completions)});
}

/**
 * open(onAnswers, spinMicroseconds), called one time per thread and mode: delivers responses to this thread. Without
 * `onAnswers`, the thread calls MPI itself, with `perform` and `drive`.
 */
void open(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto thread = std::make_shared<JavaScriptThread>();
  thread->isCaller = !info[0].IsFunction();
  ThreadSlot& slot = thread->isCaller ? openThreadOf(env).caller : openThreadOf(env).called;
  if (slot != nullptr) throw Napi::Error::New(env, "MPI is open in this thread already");
  if (!thread->isCaller) {
    thread->function = JavaScriptThread::Wake::New(env, info[0].As<Napi::Function>(), "skein-mpi", 0, 1, thread.get());
    thread->function.Unref(env);
  }
  slot = thread;
  // Cleanup hooks run in reverse order: this hook runs before the hook of the thread-safe function, so that no
  // destroyed function is called.
  env.AddCleanupHook([thread] { Engine::instance().leave(thread); });
#if defined(OPEN_MPI)
  // On two ranks Open MPI 4.1 reduces along a binomial tree, which takes twice as long as recursive halving and
  // doubling. The latter is at least as fast at every size.
  setenv("OMPI_MCA_coll_libnbc_iallreduce_algorithm", "3", 0);
  // By default, the kernel copies a message above 4 KiB, including its header, from the sender's memory, which takes 4
  // µs longer than a copy in user space.
  setenv("OMPI_MCA_btl_vader_eager_limit", "16448", 0);
#endif
  Engine::instance().start(std::chrono::microseconds(info[1].As<Napi::Number>().Int64Value()));
}

/**
 * Returns the address of a view's bytes. A view of a detached buffer has no bytes, so its length does not match
 * `wanted`.
 */
char* bytesOf(const Napi::Value& value, size_t wanted, const char* name) {
  if (!value.IsTypedArray()) {
    if (wanted == 0) return nullptr;
    throw Napi::TypeError::New(value.Env(), std::string(name) + " is not a Uint8Array");
  }
  auto array = value.As<Napi::Uint8Array>();
  if (array.ByteLength() < wanted) {
    throw Napi::RangeError::New(value.Env(), std::string(name) + " has " + std::to_string(array.ByteLength()) + " bytes, " +
                                                 std::to_string(wanted) + " are needed; a detached buffer has none");
  }
  return reinterpret_cast<char*>(array.Data());
}

/**
 * Converts the arguments (id, kind, communicator, input, inputBytes, output, outputBytes, count, element, reduction,
 * peer, tag, limit, timeout, agreement) to a command.
 */
Command commandOf(const Napi::CallbackInfo& info, const ThreadSlot& slot) {
  if (slot == nullptr) throw Napi::Error::New(info.Env(), "MPI is not open in this thread");
  const auto number = [&](size_t i) { return info[i].As<Napi::Number>().DoubleValue(); };
  const auto integer = [&](size_t i) { return info[i].As<Napi::Number>().Int32Value(); };
  Command command;
  command.id = number(0);
  command.kind = static_cast<Kind>(integer(1));
  command.communicator = integer(2);
  command.input = bytesOf(info[3], static_cast<size_t>(number(4)), "input");
  command.output = bytesOf(info[5], static_cast<size_t>(number(6)), "output");
  command.count = static_cast<size_t>(number(7));
  command.element = static_cast<Element>(integer(8));
  command.reduction = static_cast<Reduction>(integer(9));
  command.peer = integer(10);
  command.tag = integer(11);
  command.limit = static_cast<size_t>(number(12));
  command.timeout = number(13);
  command.agreement = info[14].As<Napi::Number>().Uint32Value();
  command.client = slot;
  command.byCaller = slot->isCaller;
  return command;
}

/** Posts a command to the progress thread. */
void post(const Napi::CallbackInfo& info) {
  const ThreadSlot& slot = openThreadOf(info.Env()).called;
  Command command = commandOf(info, slot);
  if (slot->waiting++ == 0) slot->function.Ref(info.Env());
  Engine::instance().post(std::move(command));
}

/** Starts a command in this thread. */
void perform(const Napi::CallbackInfo& info) { Engine::instance().perform(commandOf(info, openThreadOf(info.Env()).caller)); }

/**
 * drive(spinMicroseconds, sliceMicroseconds): calls MPI until responses are available, at most for these times.
 *
 * @returns a batch of responses, or undefined.
 */
Napi::Value drive(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const ThreadSlot& slot = openThreadOf(env).caller;
  if (slot == nullptr) throw Napi::Error::New(env, "this thread does not call MPI itself");
  const auto microseconds = [&](size_t i) { return std::chrono::microseconds(info[i].As<Napi::Number>().Int64Value()); };
  if (!slot->hasAnswers()) Engine::instance().drive(*slot, microseconds(0), microseconds(1));
  const std::vector<Completion> completions = slot->take();
  return completions.empty() ? env.Undefined() : batchOf(env, completions);
}

/** Returns the version string of the loaded library; may be called before MPI is opened. */
Napi::Value library(const Napi::CallbackInfo& info) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  return Napi::String::New(info.Env(), text, static_cast<size_t>(length));
}

Napi::Object load(Napi::Env env, Napi::Object exports) {
  exports.Set("family", SKEIN_MPI_FAMILY);
  exports.Set("version", SKEIN_MPI_VERSION);
  exports.Set("library", Napi::Function::New(env, library));
  exports.Set("open", Napi::Function::New(env, open));
  exports.Set("perform", Napi::Function::New(env, perform));
  exports.Set("drive", Napi::Function::New(env, drive));
  exports.Set("post", Napi::Function::New(env, post));
  return exports;
}

}  // namespace

NODE_API_MODULE(skein_mpi, load)

}  // namespace skein
