#include "reductions.h"

#include <cmath>
#include <cstring>

namespace skein {
namespace {

float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

struct F32 {
  using Stored = float;
  static float decode(float stored) { return stored; }
  static float encode(float value) { return value; }
};

struct Bf16 {
  using Stored = uint16_t;
  static float decode(uint16_t stored) { return floatOf(static_cast<uint32_t>(stored) << 16); }
  /** Converts a float to bf16. Rounds to nearest, ties to even; NaN stays NaN. */
  static uint16_t encode(float value) {
    const uint32_t bits = bitsOf(value);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return static_cast<uint16_t>(value != value ? (0x7fc0 | ((bits >> 16) & 0x8000)) : rounded);
  }
};

struct F16 {
  using Stored = uint16_t;
  /**
   * Converts a half to a float. The shifted exponent and fraction of a half form a float that is too small by a factor
   * of 2^112, also for subnormals; the multiplication is exact.
   */
  static float decode(uint16_t stored) {
    const uint32_t magnitude = static_cast<uint32_t>(stored & 0x7fff) << 13;
    const uint32_t sign = static_cast<uint32_t>(stored & 0x8000) << 16;
    const uint32_t finite = bitsOf(floatOf(magnitude) * floatOf(0x77800000));
    return floatOf(sign | ((stored & 0x7c00) == 0x7c00 ? (magnitude | 0x7f800000) : finite));
  }
  /** Converts a float to half. Rounds to nearest, ties to even, with subnormals; NaN stays NaN. */
  static uint16_t encode(float value) {
    const uint32_t bits = bitsOf(value);
    const uint32_t sign = (bits >> 16) & 0x8000;
    const uint32_t magnitude = bits & 0x7fffffff;
    // One unit in the last place of a float near 0.5 is 2^-24, the spacing of subnormal halves, so the addition rounds
    // correctly.
    const uint32_t subnormal = bitsOf(floatOf(magnitude) + 0.5f) - 0x3f000000;
    const uint32_t rebased = magnitude - 0x38000000;
    const uint32_t normal = (rebased + 0xfff + ((rebased >> 13) & 1)) >> 13;
    const uint32_t finite = magnitude < 0x38800000 ? subnormal : magnitude >= 0x477ff000 ? 0x7c00 : normal;
    return static_cast<uint16_t>(sign | (magnitude > 0x7f800000 ? 0x7e00 : finite));
  }
};

struct Sum {
  static float apply(float a, float b) { return a + b; }
};

// MPI_MAX and MPI_MIN of floats may drop a NaN, which shows that a run has diverged. Zeros are ordered: −0 < +0.
struct Max {
  static float apply(float a, float b) {
    if (a != a || b != b) return a + b;
    return a > b || (a == b && !std::signbit(a)) ? a : b;
  }
};
struct Min {
  static float apply(float a, float b) {
    if (a != a || b != b) return a + b;
    return a < b || (a == b && std::signbit(a)) ? a : b;
  }
};

template <typename Format, typename Operator>
void fold(void* input, void* inputAndOutput, int* length, MPI_Datatype*) {
  const auto* a = static_cast<const typename Format::Stored*>(input);
  auto* b = static_cast<typename Format::Stored*>(inputAndOutput);
  for (int i = 0; i < *length; i++) b[i] = Format::encode(Operator::apply(Format::decode(a[i]), Format::decode(b[i])));
}

}  // namespace

int Reductions::create() {
  MPI_User_function* const folds[] = {fold<F16, Sum>,  fold<F16, Max>,  fold<F16, Min>, fold<Bf16, Sum>,
                                      fold<Bf16, Max>, fold<Bf16, Min>, fold<F32, Max>, fold<F32, Min>};
  for (size_t i = 0; i < sizeof folds / sizeof folds[0]; i++) {
    const int code = MPI_Op_create(folds[i], 1, &made_[i]);
    if (code != MPI_SUCCESS) return code;
  }
  exist_ = true;
  return MPI_SUCCESS;
}

void Reductions::free() {
  if (!exist_) return;
  for (MPI_Op& operation : made_) MPI_Op_free(&operation);
  exist_ = false;
}

MPI_Op Reductions::of(Element element, Reduction reduction) const {
  const int which = static_cast<int>(reduction);
  if (element == Element::f16) return made_[which];
  if (element == Element::bf16) return made_[3 + which];
  if (reduction == Reduction::sum) return MPI_SUM;
  if (element == Element::f32) return made_[reduction == Reduction::max ? 6 : 7];
  return reduction == Reduction::max ? MPI_MAX : MPI_MIN;
}

MPI_Datatype typeOf(Element element) {
  switch (element) {
    case Element::f32:
      return MPI_FLOAT;
    case Element::f16:
    case Element::bf16:
      return MPI_UINT16_T;
    case Element::i32:
      return MPI_INT32_T;
    case Element::u32:
      return MPI_UINT32_T;
    case Element::bytes:
      break;
  }
  return MPI_BYTE;
}

size_t bytesOf(Element element) {
  if (element == Element::bytes) return 1;
  return element == Element::f16 || element == Element::bf16 ? 2 : 4;
}

}  // namespace skein
