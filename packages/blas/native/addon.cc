// Uses the plain C interface of Node: a product has 17 arguments, and the C++ wrapper would allocate an object for each
// argument.
#include <node_api.h>

#include <cstdint>
#include <exception>
#include <mutex>
#include <string>

#include "library.h"

namespace skein {
namespace {

constexpr int rowMajor = 101;
constexpr int plain = 111;
constexpr int transposed = 112;

/** Product of a library, bound to one memory. */
struct Product {
  Sgemm sgemm;
  bool concurrent;
  char* memory;
  /** Reference that keeps the memory alive. */
  napi_ref view;
};

/** Lock for libraries that are not safe to call from several threads. The lock is held during a product. */
std::mutex oneAtATime;

napi_value fail(napi_env env, const std::string& message) {
  napi_throw_error(env, nullptr, message.c_str());
  return nullptr;
}

/**
 * Computes products. Arguments: (transposeA, transposeB, rows, columns, inner, alpha, a, aStride, b, bStride, beta, y,
 * yStride, batch, aNext, bNext, yNext).
 */
napi_value multiply(napi_env env, napi_callback_info info) {
  constexpr size_t expected = 17;
  size_t count = expected;
  napi_value arguments[expected];
  void* data = nullptr;
  if (napi_get_cb_info(env, info, &count, arguments, nullptr, &data) != napi_ok || count < expected) return fail(env, "sgemm takes 17 numbers");
  bool numbers = true;
  const auto integer = [&](size_t i) {
    int32_t value = 0;
    numbers &= napi_get_value_int32(env, arguments[i], &value) == napi_ok;
    return value;
  };
  const auto real = [&](size_t i) {
    double value = 0;
    numbers &= napi_get_value_double(env, arguments[i], &value) == napi_ok;
    return static_cast<float>(value);
  };
  const auto* product = static_cast<const Product*>(data);
  // An address above 2 GiB may be passed as a negative number.
  const auto address = [&](size_t i) { return reinterpret_cast<float*>(product->memory + static_cast<uint32_t>(integer(i))); };
  const int transposeA = integer(0) == 0 ? plain : transposed;
  const int transposeB = integer(1) == 0 ? plain : transposed;
  const int rows = integer(2), columns = integer(3), inner = integer(4);
  const float alpha = real(5);
  const float* a = address(6);
  const int aStride = integer(7);
  const float* b = address(8);
  const int bStride = integer(9);
  const float beta = real(10);
  float* y = address(11);
  const int yStride = integer(12), batch = integer(13);
  const int32_t aNext = integer(14), bNext = integer(15), yNext = integer(16);
  if (!numbers) return fail(env, "sgemm takes 17 numbers");
  std::unique_lock<std::mutex> alone(oneAtATime, std::defer_lock);
  if (!product->concurrent) alone.lock();
  for (int i = 0; i < batch; i++) {
    product->sgemm(rowMajor, transposeA, transposeB, rows, columns, inner, alpha, a, aStride, b, bStride, beta, y, yStride);
    a += aNext;
    b += bNext;
    y += yNext;
  }
  return nullptr;
}

void forget(napi_env env, void* data, void*) {
  auto* product = static_cast<Product*>(data);
  napi_delete_reference(env, product->view);
  delete product;
}

std::string textOf(napi_env env, napi_value value) {
  char text[4097] = "";
  size_t length = 0;
  napi_get_value_string_utf8(env, value, text, sizeof text, &length);
  return std::string(text, length);
}

/** describe(library): returns { family, version, core, concurrent }. */
napi_value describe(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value name;
  napi_get_cb_info(env, info, &count, &name, nullptr, nullptr);
  Library library;
  try {
    library = loadLibrary(textOf(env, name));
  } catch (const std::exception& error) {
    return fail(env, error.what());
  }
  napi_value result;
  napi_create_object(env, &result);
  const auto set = [&](const char* key, const std::string& text) {
    napi_value value;
    napi_create_string_utf8(env, text.c_str(), text.size(), &value);
    napi_set_named_property(env, result, key, value);
  };
  set("family", library.family);
  set("version", library.version);
  set("core", library.core);
  napi_value concurrent;
  napi_get_boolean(env, library.concurrent, &concurrent);
  napi_set_named_property(env, result, "concurrent", concurrent);
  return result;
}

/**
 * open(library, memory): returns the product of the library, bound to a memory that does not move. `memory` is a
 * Uint8Array that starts at the memory's first byte.
 */
napi_value open(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value arguments[2];
  napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr);
  void* bytes = nullptr;
  size_t offset = 0;
  if (count < 2 || napi_get_typedarray_info(env, arguments[1], nullptr, nullptr, &bytes, nullptr, &offset) != napi_ok)
    return fail(env, "open needs a library's name and a Uint8Array");
  // The pointer should be the start of the view, but some versions of Node do not add the offset of the view.
  if (offset != 0) return fail(env, "open needs a view that starts at the memory's first byte");
  auto* product = new Product{nullptr, true, static_cast<char*>(bytes), nullptr};
  try {
    const Library library = loadLibrary(textOf(env, arguments[0]));
    product->sgemm = library.sgemm;
    product->concurrent = library.concurrent;
  } catch (const std::exception& error) {
    delete product;
    return fail(env, error.what());
  }
  napi_value function;
  if (napi_create_reference(env, arguments[1], 1, &product->view) != napi_ok ||
      napi_create_function(env, "sgemm", NAPI_AUTO_LENGTH, multiply, product, &function) != napi_ok ||
      napi_add_finalizer(env, function, product, forget, nullptr, nullptr) != napi_ok) {
    delete product;
    return fail(env, "Node could not create the product's function");
  }
  return function;
}

napi_value load(napi_env env, napi_value exports) {
  const napi_property_descriptor functions[] = {
      {"describe", nullptr, describe, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
      {"open", nullptr, open, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
  };
  napi_define_properties(env, exports, 2, functions);
  return exports;
}

}  // namespace

NAPI_MODULE(skein_blas, load)

}  // namespace skein
