import { bytesPerElement, type DType, elementCount, type FusedParams, type KernelNode, rowMajorStrides } from "@skein/tensor-core";
import type { Binding, Pass } from "../../kernel.ts";
import { bindingType, encodeFunction, loadFunction, registerType } from "../../storage.ts";
import { expressionOf, functionsFor } from "./expressions.ts";

const workgroupSize = 64;

const vector = (dtype: DType): string => `vec4<${registerType[dtype]}>`;

/** A number as WGSL, never as a decimal: what decimals cannot say must not be told by constants, hence the bits from a variable. */
const literal = (value: number, dtype: DType): string => {
  if (dtype === "bool") return `vec4<bool>(${value !== 0})`;
  if (dtype === "i32") return value === -(2 ** 31) ? "vec4<i32>(i32(-2147483647) - 1)" : `vec4<i32>(${Math.trunc(value)})`;
  if (dtype === "u32" || dtype === "u8") return `vec4<u32>(${Math.trunc(value)}u)`;
  const rounded = Math.fround(value);
  if (!Number.isFinite(rounded)) {
    const bits = Number.isNaN(rounded) ? "0x7fc00000u" : rounded > 0 ? "0x7f800000u" : "0xff800000u";
    return `vec4<f32>(bitcast<f32>(${bits} | never))`;
  }
  if (Object.is(rounded, -0)) return "vec4<f32>(bitcast<f32>(0x80000000u | never))";
  const text = String(rounded);
  return `vec4<f32>(${/[.e]/.test(text) ? text : `${text}.0`})`;
};

/** Flat index of an input's element for flat index `at` of the result. */
const stretchedIndex = (shape: readonly number[], strides: readonly number[], at: string): string => {
  const steps = rowMajorStrides(shape);
  const terms = shape.flatMap((size, dim) => {
    if (size === 1 || strides[dim] === 0) return [];
    const quotient = steps[dim] === 1 ? at : `${at} / ${steps[dim]}u`;
    const index = dim === 0 ? quotient : `(${quotient}) % ${size}u`;
    return [strides[dim] === 1 ? `(${index})` : `(${index}) * ${strides[dim]}u`];
  });
  return terms.length === 0 ? "0u" : terms.join(" + ");
};

const isDense = (shape: readonly number[], strides: readonly number[]): boolean => {
  const dense = rowMajorStrides(shape);
  return strides.every((stride, dim) => shape[dim] === 1 || stride === dense[dim]);
};

const isSingle = (shape: readonly number[], strides: readonly number[]): boolean =>
  strides.every((stride, dim) => shape[dim] === 1 || stride === 0);

/** Elements 4·at … 4·at+3 of packed words. */
const unpackDense = (name: string, dtype: DType): string => {
  switch (dtype) {
    case "f16":
      return `vec4<f32>(unpack2x16float(${name}[2u * at]), unpack2x16float(${name}[2u * at + 1u]))`;
    case "bf16":
      return `bitcast<vec4<f32>>(vec4<u32>(${name}[2u * at] << 16u, ${name}[2u * at] & 0xffff0000u, ${name}[2u * at + 1u] << 16u, ${name}[2u * at + 1u] & 0xffff0000u))`;
    case "u8":
      return `((vec4<u32>(${name}[at]) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u))`;
    case "bool":
      return `(((vec4<u32>(${name}[at]) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u)) != vec4<u32>())`;
    default:
      return `${name}[at]`;
  }
};

const store = (name: string, dtype: DType, value: string): string => {
  switch (dtype) {
    case "f16":
      return `  { let w = pack_half(${value}); ${name}[2u * at] = w.x; ${name}[2u * at + 1u] = w.y; }`;
    case "bf16":
      return `  { let h = round_bf16(${value}); ${name}[2u * at] = h.x | (h.y << 16u); ${name}[2u * at + 1u] = h.z | (h.w << 16u); }`;
    case "u8":
    case "bool": {
      const bytes = dtype === "u8" ? `${value} & vec4<u32>(255u)` : `select(vec4<u32>(), vec4<u32>(1u), ${value})`;
      return `  { let b = (${bytes}) << vec4<u32>(0u, 8u, 16u, 24u); ${name}[at] = b.x | b.y | b.z | b.w; }`;
    }
    default:
      return `  ${name}[at] = ${value};`;
  }
};

const halfFunctions = `fn pack_half(v: vec4<f32>) -> vec2<u32> { return vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw)); }
fn unpack_half(w: vec2<u32>) -> vec4<f32> { return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y)); }
${encodeFunction("bf16")}fn round_bf16(v: vec4<f32>) -> vec4<u32> { return vec4<u32>(encode_bf16(v.x), encode_bf16(v.y), encode_bf16(v.z), encode_bf16(v.w)); }
`;

/** One pass over memory for a whole elementwise program: each invocation computes four neighbours in vectors. */
export const fusedPass = (node: KernelNode): Pass => {
  const { shape, views, instructions, results } = node.params as unknown as FusedParams;
  const count = elementCount(shape);
  const vectors = Math.ceil(count / 4);
  const bindings: Binding[] = [];
  const body: string[] = [];
  const loads: string[] = [];
  const registers: string[] = [];
  const dtypes = [...node.inputs.map((input) => input.dtype), ...instructions.map((instruction) => instruction.dtype)];
  const vectorType = (dtype: DType): string => (bytesPerElement[dtype] === 4 ? `array<${vector(dtype)}>` : "array<u32>");

  node.inputs.forEach(({ dtype }, i) => {
    const name = `x${i}`;
    const { strides } = views[i]!;
    const dense = isDense(shape, strides);
    bindings.push({ name, type: dense ? vectorType(dtype) : bindingType(dtype), source: { input: i }, access: "read" });
    registers.push(`r${i}`);
    if (dense) {
      body.push(`  let r${i} = ${unpackDense(name, dtype)};`);
      return;
    }
    loads.push(loadFunction(name, dtype));
    if (isSingle(shape, strides)) {
      body.push(`  let r${i} = ${vector(dtype)}(load_${name}(0u));`);
      return;
    }
    loads.push(`fn index_${name}(at: u32) -> u32 { return ${stretchedIndex(shape, strides, "at")}; }\n`);
    const lanes = [0, 1, 2, 3].map((lane) => `load_${name}(index_${name}(min(4u * at + ${lane}u, ${count - 1}u)))`);
    body.push(`  let r${i} = ${vector(dtype)}(${lanes.join(", ")});`);
  });
  instructions.forEach((instruction, j) => {
    const register = `r${node.inputs.length + j}`;
    registers.push(register);
    const expression =
      instruction.op === "constant"
        ? literal(Number(instruction.params["value"]), instruction.dtype)
        : expressionOf(
            instruction,
            instruction.args.map((arg) => registers[arg]!),
            instruction.args.map((arg) => dtypes[arg]!),
          );
    body.push(`  let ${register} = ${expression};`);
  });
  results.forEach((register, i) => {
    const { dtype } = node.outputs[i]!;
    bindings.push({ name: `y${i}`, type: vectorType(dtype), source: { output: i }, access: "write" });
    body.push(store(`y${i}`, dtype, registers[register]!));
  });
  const text = body.join("\n");
  const code = [
    "var<private> never: u32 = 0u;",
    halfFunctions,
    functionsFor(text),
    ...loads,
    "fn main(group: u32, lane: u32) {",
    `  let at = group * ${workgroupSize}u + lane;`,
    "  if (at >= sizes.vectors) { return; }",
    text,
    "}",
  ].join("\n");
  return { label: "fused", bindings, workgroupSize, groups: Math.ceil(vectors / workgroupSize), code, sizes: { vectors } };
};
