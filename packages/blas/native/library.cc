#include "library.h"

#include <dlfcn.h>

#include <sstream>
#include <stdexcept>

namespace skein {
namespace {

template <typename Function>
Function find(void* handle, const char* symbol) {
  return reinterpret_cast<Function>(dlsym(handle, symbol));
}

/** Returns the second word of a text. Example: "0.3.21" of "OpenBLAS 0.3.21 DYNAMIC_ARCH …". */
std::string secondWord(const std::string& text) {
  std::istringstream words(text);
  std::string first, second;
  words >> first >> second;
  return second;
}

bool isOpenBlas(void* handle, Library& library) {
  const auto config = find<char* (*)()>(handle, "openblas_get_config");
  const auto threads = find<void (*)(int)>(handle, "openblas_set_num_threads");
  if (config == nullptr || threads == nullptr) return false;
  threads(1);
  const auto core = find<char* (*)()>(handle, "openblas_get_corename");
  library.family = "OpenBLAS";
  library.version = secondWord(config());
  if (core != nullptr) library.core = core();
  // The value 0 means a build without threads. Concurrent callers of such a build sometimes share a buffer and get
  // wrong products.
  const auto parallel = find<int (*)()>(handle, "openblas_get_parallel");
  library.concurrent = parallel != nullptr && parallel() != 0;
  return true;
}

bool isBlis(void* handle, Library& library) {
  const auto version = find<const char* (*)()>(handle, "bli_info_get_version_str");
  const auto threads = find<void (*)(long)>(handle, "bli_thread_set_num_threads");
  if (version == nullptr || threads == nullptr) return false;
  threads(1);
  const auto query = find<int (*)()>(handle, "bli_arch_query_id");
  const auto name = find<const char* (*)(int)>(handle, "bli_arch_string");
  library.family = "BLIS";
  library.version = version();
  if (query != nullptr && name != nullptr) library.core = name(query());
  return true;
}

bool isMkl(void* handle, Library& library) {
  // Looks up the C functions. The lower-case functions of the same names are the Fortran interface, whose arguments are
  // pointers.
  const auto version = find<void (*)(char*, int)>(handle, "MKL_Get_Version_String");
  const auto threads = find<void (*)(int)>(handle, "MKL_Set_Num_Threads");
  if (version == nullptr || threads == nullptr) return false;
  constexpr int sequential = 1;
  if (const auto layer = find<int (*)(int)>(handle, "MKL_Set_Threading_Layer")) layer(sequential);
  threads(1);
  char text[256] = "";
  version(text, sizeof text - 1);
  library.family = "MKL";
  // For example "Intel(R) oneAPI Math Kernel Library Version 2024.0-Product Build … for Intel(R) 64 architecture
  // applications"
  const std::string whole = text;
  const auto at = whole.find("Version ");
  library.version = at == std::string::npos ? whole : whole.substr(at + 8, whole.find(" for ", at) - at - 8);
  return true;
}

/**
 * Whether the function multiplies as the CBLAS header specifies. A build for 64-bit integers reads its arguments from
 * different registers and stack offsets.
 */
bool multiplies(Sgemm sgemm) {
  const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 2, 0, 1, 3};
  float y[] = {7, 7, 7, 7};
  sgemm(101, 111, 112, 2, 2, 3, 1, a, 3, b, 3, 0, y, 2);
  return y[0] == 7 && y[1] == 11 && y[2] == 16 && y[3] == 23;
}

}  // namespace

Library loadLibrary(const std::string& name) {
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(dlerror());
  Library library;
  if (!isOpenBlas(handle, library) && !isBlis(handle, library) && !isMkl(handle, library))
    throw std::runtime_error(name + " is not OpenBLAS, BLIS or MKL");
  library.sgemm = find<Sgemm>(handle, "cblas_sgemm");
  if (library.sgemm == nullptr) throw std::runtime_error(name + " has no cblas_sgemm; install a build with the C interface");
  if (!multiplies(library.sgemm))
    throw std::runtime_error(name + " gives wrong products with 32-bit integers; use a build with 32-bit integers (LP64)");
  return library;
}

}  // namespace skein
