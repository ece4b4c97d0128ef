import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NdArray, printGraph, type Tensor, trace } from "@skein/tensor-core";
import { afterEach, describe, expect, test } from "vitest";
import { type CarriedTensor, PretrainedError } from "../src/index.ts";
import { loadPretrained, savePretrained } from "../src/node.ts";
import { asStored, checkpointFolder, checkpoints, fileOf, tensorsOf } from "./checkpoints.ts";

const made: string[] = [];
const emptyFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "skein-pretrained-"));
  made.push(folder);
  return folder;
};
afterEach(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true });
});

const bits = (tensors: ReadonlyMap<string, CarriedTensor>): Record<string, string> =>
  Object.fromEntries(
    [...tensors].map(([name, { dtype, shape, bytes }]) => [name, `${dtype}[${shape.join(", ")}] ${bytes.join(" ")}`]),
  );
const readJson = (folder: string, file: string): unknown => JSON.parse(readFileSync(join(folder, file), "utf8"));

describe.each(checkpoints)("%s", (name) => {
  test.each([[undefined], [2000]])(
    "has the same bits after it is read and written in files of at most %s bytes",
    async (most) => {
      const [source, target] = [checkpointFolder(name), emptyFolder()];
      await savePretrained(target, await loadPretrained(source), most === undefined ? {} : { maxShardBytes: most });
      expect(bits(tensorsOf(target))).toEqual(bits(tensorsOf(source)));
      expect(readJson(target, "config.json")).toEqual(readJson(source, "config.json"));
      const files = readdirSync(target).filter((file) => file.endsWith(".safetensors"));
      if (most === 1) expect(files.length).toBe(tensorsOf(source).size);
      if (most === undefined) expect(files).toEqual(["model.safetensors"]);
      // A checkpoint split into several files is read through its index.
      const again = emptyFolder();
      await savePretrained(again, await loadPretrained(target));
      expect(bits(tensorsOf(again))).toEqual(bits(tensorsOf(source)));
    },
  );

  test("the same weights in f32 are written in every dtype", async () => {
    const loaded = await loadPretrained(checkpointFolder(name));
    const wide = emptyFolder();
    await savePretrained(wide, { config: loaded.config, params: loaded.params, state: loaded.state });
    const plain = await loadPretrained(wide);
    expect(plain.params).toEqual(loaded.params);
    const narrow = emptyFolder();
    await savePretrained(narrow, plain, { dtype: "bf16" });
    expect(new Set([...tensorsOf(narrow).values()].map(({ dtype }) => dtype))).toEqual(new Set(["bf16"]));
    expect(readJson(narrow, "config.json")).toMatchObject({ torch_dtype: "bfloat16" });
    const [{ config, params, state }, trained] = [await loadPretrained(narrow), emptyFolder()];
    await savePretrained(trained, { config, params, state });
    expect(readJson(trained, "config.json")).toMatchObject({ torch_dtype: "float32" });
  });
});

test("a tensor larger than the maximum of a file gets a separate file", async () => {
  const target = emptyFolder();
  await savePretrained(target, await loadPretrained(checkpointFolder("qwen2")), { maxShardBytes: 1 });
  const source = tensorsOf(checkpointFolder("qwen2"));
  expect(readdirSync(target).filter((file) => file.endsWith(".safetensors")).length).toBe(source.size);
  expect(bits(tensorsOf(target))).toEqual(bits(source));
});

/** Returns the path of a copy of a checkpoint in one file, with tensors altered by `change`. */
const changed = (
  name: string,
  change: (tensors: Map<string, CarriedTensor>) => void,
  config: Readonly<Record<string, unknown>> = {},
): string => {
  const folder = emptyFolder();
  const tensors = tensorsOf(checkpointFolder(name));
  change(tensors);
  writeFileSync(join(folder, "model.safetensors"), fileOf(tensors));
  const known = readJson(checkpointFolder(name), "config.json") as object;
  writeFileSync(join(folder, "config.json"), JSON.stringify({ ...known, ...config }));
  return folder;
};
const refusal = async (promise: Promise<unknown>): Promise<string> => {
  const error: unknown = await promise.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(PretrainedError);
  return (error as Error).message;
};

test("a single message counts tensors that are missing, extra, misshaped, and of unsupported dtype", async () => {
  const folder = changed("llama-tied", (tensors) => {
    for (const layer of [0, 1]) tensors.delete(`model.layers.${layer}.mlp.up_proj.weight`);
    tensors.set("model.layers.0.self_attn.q_norm.weight", asStored(NdArray.zeros("f32", [8])));
    tensors.set("model.norm.weight", asStored(NdArray.zeros("f32", [17])));
    tensors.set("model.layers.0.input_layernorm.weight", asStored(NdArray.zeros("i32", [16])));
  });
  const message = await refusal(loadPretrained(folder));
  expect(message).toContain(`${folder} has 19 tensors for a model of 20, which do not match its config.json`);
  expect(message).toContain(
    '2 missing ("model.layers.0.mlp.up_proj.weight" [24, 16], "model.layers.1.mlp.up_proj.weight" [24, 16])',
  );
  expect(message).toContain('1 that the model does not have ("model.layers.0.self_attn.q_norm.weight" [8])');
  expect(message).toContain('1 of another shape ("model.norm.weight" is [17] instead of [16])');
  expect(message).toContain(
    '1 of a dtype other than f32, f16 or bf16 ("model.layers.0.input_layernorm.weight" is i32)',
  );
});

test("the message for another architecture names a few tensors and counts all", async () => {
  const config = readJson(checkpointFolder("llama-tied"), "config.json") as object;
  const message = await refusal(loadPretrained(changed("gpt2", () => undefined, { ...config })));
  expect(message).toContain("has 30 tensors for a model of 20, which do not match its config.json");
  expect(message).toMatch(/: 20 missing \("model\.layers\.0\.[^)]*, … 16 more\); 30 that the model does not have \(/);
});

test("rejects the old and the new name of one tensor together", async () => {
  const folder = changed("bert-tokens", (tensors) =>
    tensors.set("bert.embeddings.LayerNorm.weight", tensors.get("bert.embeddings.LayerNorm.gamma")!),
  );
  expect(await refusal(loadPretrained(folder))).toContain(
    'holds "bert.embeddings.LayerNorm.gamma" and "bert.embeddings.LayerNorm.weight", which are names of one tensor',
  );
});

test("a body without a head is read also by the names that it has with a head, and written unchanged", async () => {
  const { stored } = await loadPretrained(checkpointFolder("gpt2"));
  expect(stored.leaves.get("params.embedding_VD")!.name).toBe("wte.weight");
  expect([...stored.carried.keys()]).toEqual(["h.0.attn.bias", "h.1.attn.bias"]);
  const folder = changed("gpt2", (tensors) => tensors.set("lm_head.weight", tensors.get("wte.weight")!));
  expect([...(await loadPretrained(folder)).stored.copies]).toEqual([["lm_head.weight", "params.embedding_VD"]]);
  const whole = await loadPretrained(checkpointFolder("gpt2-untied"));
  expect(whole.stored.leaves.get("params.embedding_VD")!.name).toBe("transformer.wte.weight");
});

test("a frequency table of an old file is preserved, and a copy of the embedding is updated", async () => {
  const inverse = asStored(NdArray.from([1, 0.5], [2]));
  const folder = changed("llama-tied", (tensors) => {
    tensors.set("model.layers.0.self_attn.rotary_emb.inv_freq", inverse);
    tensors.set("lm_head.weight", tensors.get("model.embed_tokens.weight")!);
  });
  const loaded = await loadPretrained<{ embedding_VD: never }>(folder);
  const target = emptyFolder();
  const moved = NdArray.zeros("f32", [29, 16]);
  await savePretrained(target, { ...loaded, params: { ...loaded.params, embedding_VD: moved } });
  const written = tensorsOf(target);
  expect(written.get("model.layers.0.self_attn.rotary_emb.inv_freq")).toEqual(inverse);
  expect(written.get("model.embed_tokens.weight")).toEqual(asStored(moved));
  expect(written.get("lm_head.weight")).toEqual(asStored(moved));
});

/** Returns the printed graph of the model in a folder. */
const graphOf = async (path: string): Promise<string> => {
  const { model, params } = await loadPretrained(path);
  const apply = (p: unknown, x: Tensor): Tensor => model.apply(p, {}, x, { train: false })[0];
  return printGraph(trace(apply, [params, { dtype: "i32", shape: [1, 4] }] as never).graph);
};

test.each<[string, Record<string, unknown>, RegExp | undefined]>([
  ["mistral", { sliding_window: 3 }, /up to the context length 3/],
  ["mistral", { sliding_window: 4 }, undefined],
  ["mistral", { sliding_window: null }, undefined],
  ["qwen2", { sliding_window: 3, use_sliding_window: true }, /up to the context length 3/],
  ["qwen2", { sliding_window: 3, use_sliding_window: false }, undefined],
])("%s with %j accepts sequences up to the window", async (modelType, config, message) => {
  const name = modelType === "qwen2" ? "qwen2" : "llama-tied";
  const graph = graphOf(changed(name, () => undefined, { model_type: modelType, ...config }));
  if (message === undefined) await expect(graph).resolves.toContain("attention");
  else await expect(graph).rejects.toThrow(message);
});

test("no scaling and default scaling are the same", async () => {
  const folders = [
    { rope_scaling: null, num_key_value_heads: null, head_dim: null },
    { rope_scaling: { rope_type: "default" } },
    { rope_scaling: undefined, rope_theta: undefined, rope_parameters: { rope_type: "default", rope_theta: 10_000 } },
  ].map((config) => changed("llama-tied", () => undefined, config));
  const [first, ...others] = await Promise.all(folders.map(graphOf));
  expect(others).toEqual([first, first]);
  expect(await graphOf(checkpointFolder("llama-tied"))).not.toBe(first);
});

test.each<[string, Record<string, unknown>, RegExp]>([
  ["an unknown model", { model_type: "lama" }, /model_type "lama", but supported are .*; did you mean llama\?/],
  ["another model with a similar name", { model_type: "qwen" }, /model_type "qwen", but .*; use a checkpoint/],
  ["no model", { model_type: undefined }, /model_type nothing, but supported are/],
  ["another activation", { hidden_act: "gelu" }, /"llama" is not supported: hidden_act: .*"silu"/],
  ["an invalid size", { vocab_size: 0, hidden_size: 1.5 }, /vocab_size: .*; hidden_size: /],
  ["an unsupported position scaling", { rope_scaling: { type: "yarn", factor: 2 } }, /rope_scaling\.rope_type: /],
])("rejects a configuration with %s", async (_, config, message) => {
  expect(await refusal(loadPretrained(changed("llama-tied", () => undefined, config)))).toMatch(message);
});

test.each<[string, object, string | undefined]>([
  ["bitsandbytes", { quant_method: "bitsandbytes", load_in_4bit: true, load_in_8bit: false }, '"bitsandbytes", 4 bits'],
  ["bitsandbytes, old format", { load_in_8bit: true }, '"bitsandbytes", 8 bits'],
  ["gptq", { quant_method: "gptq", bits: 4, group_size: 128 }, '"gptq", 4 bits'],
  ["awq", { quant_method: "awq", bits: 4, zero_point: true }, '"awq", 4 bits'],
  ["fp8", { quant_method: "fp8", weight_block_size: [128, 128] }, '"fp8"'],
  ["an unknown method", { quant_method: "\u001b[2J" }, String.raw`"\u001b[2J"`],
  ["a method without a name", { bits: 3 }, "by no named method, 3 bits"],
  ["no method, with disabled settings", { load_in_8bit: false, load_in_4bit: false }, undefined],
])("rejects weights quantized by %s in one sentence", async (_, quantization_config, told) => {
  const folder = changed("llama-tied", () => undefined, { quantization_config });
  if (told === undefined) await expect(loadPretrained(folder)).resolves.toBeDefined();
  else
    expect(await refusal(loadPretrained(folder))).toBe(
      `config.json describes quantized weights (quantization_config: ${told}), but only weights in f32, f16 and bf16 are supported; use the original checkpoint before quantization`,
    );
});

test("rejects quantized weights that are recognized only by their tensors in one sentence", async () => {
  const name = "model.layers.0.mlp.up_proj";
  const folder = changed("llama-tied", (tensors) => {
    const { shape } = tensors.get(`${name}.weight`)!;
    tensors.delete(`${name}.weight`);
    tensors.set(`${name}.qweight`, { dtype: "i8", shape, bytes: new Uint8Array(shape[0]! * shape[1]!) });
  });
  expect(await refusal(loadPretrained(folder))).toMatch(
    /^.* has 1 tensors of quantised weights, such as "model\.layers\.0\.mlp\.up_proj\.qweight", but only weights/,
  );
});

test("listed tensor names keep their ends", async () => {
  const folder = changed("llama-tied", (tensors) => {
    for (const end of ["one", "other"])
      tensors.set(`${"model.deep.".repeat(9)}${end}`, { dtype: "f32", shape: [0], bytes: new Uint8Array(0) });
  });
  expect(await refusal(loadPretrained(folder))).toMatch(
    /2 that the model does not have \("model\.deep.{0,12}\.\.\..*\.deep\.one" \[0\], "model.*\.deep\.other" \[0\]\)/,
  );
});

test("numbers beyond the range of f16 are counted before any write", async () => {
  const loaded = await loadPretrained<{ embedding_VD: never }>(checkpointFolder("llama-tied"));
  const embedding = NdArray.zeros("f32", [29, 16]);
  embedding.data.set([65_519, -65_520, 1e30, Infinity, NaN]);
  const weights = { ...loaded, params: { ...loaded.params, embedding_VD: embedding } };
  const folder = emptyFolder();
  expect(await refusal(savePretrained(folder, weights, { dtype: "f16" }))).toContain(
    '2 of the 464 values of "model.embed_tokens.weight" are 65520 or more, which exceeds f16; save as bf16 or f32',
  );
  expect(readdirSync(folder)).toEqual([]);
  await savePretrained(folder, weights, { dtype: "bf16" });
});

test("positions are scaled by the field of newer configurations", async () => {
  const old = await loadPretrained(checkpointFolder("llama-grouped"));
  const { rope_scaling: scaling, rope_theta: theta, ...rest } = old.config;
  const folder = emptyFolder();
  cpSync(checkpointFolder("llama-grouped"), folder, { recursive: true });
  const rope = { ...(scaling as object), rope_theta: theta };
  writeFileSync(join(folder, "config.json"), JSON.stringify({ ...rest, rope_parameters: rope }));
  expect(await graphOf(folder)).toBe(await graphOf(checkpointFolder("llama-grouped")));
});

describe("rejects a folder", () => {
  const copy = (): string => {
    const folder = emptyFolder();
    cpSync(checkpointFolder("llama-grouped"), folder, { recursive: true });
    return folder;
  };
  const indexName = "model.safetensors.index.json";
  const editIndex = (folder: string, edit: (map: Record<string, string>) => void): void => {
    const index = readJson(folder, indexName) as { weight_map: Record<string, string> };
    edit(index.weight_map);
    writeFileSync(join(folder, indexName), JSON.stringify(index));
  };

  test("without a configuration", async () => {
    expect(await refusal(loadPretrained(emptyFolder()))).toMatch(/config\.json cannot be read \(ENOENT\); give the/);
  });
  test("with a configuration that is not JSON, or not an object", async () => {
    const folder = copy();
    writeFileSync(join(folder, "config.json"), "{");
    expect(await refusal(loadPretrained(folder))).toMatch(/config\.json is not valid JSON/);
    writeFileSync(join(folder, "config.json"), "[1]");
    expect(await refusal(loadPretrained(folder))).toMatch(/holds \[1\] instead of an object/);
  });
  test("with more layers than the maximum", async () => {
    const folder = copy();
    const config = readJson(folder, "config.json") as object;
    writeFileSync(join(folder, "config.json"), JSON.stringify({ ...config, num_hidden_layers: 1e9 }));
    expect(await refusal(loadPretrained(folder))).toMatch(/num_hidden_layers: Too big: .* <=10000/);
  });
  test("with pickled weights only", async () => {
    const folder = copy();
    rmSync(join(folder, indexName));
    expect(await refusal(loadPretrained(folder))).toMatch(/neither model\.safetensors nor .*; give the folder/);
    writeFileSync(join(folder, "pytorch_model.bin"), "");
    expect(await refusal(loadPretrained(folder))).toMatch(
      /"pytorch_model\.bin", which runs code .* safe_serialization/,
    );
  });
  test("with an index that refers to a file outside", async () => {
    const folder = copy();
    editIndex(folder, (map) => (map["model.norm.weight"] = "../model-00001-of-00003.safetensors"));
    expect(await refusal(loadPretrained(folder))).toMatch(/not a tensor index: .* must be a file next to the index/);
  });
  test("with an index of a missing file", async () => {
    const folder = copy();
    rmSync(join(folder, "model-00002-of-00003.safetensors"));
    expect(await refusal(loadPretrained(folder))).toMatch(
      /model-00002-of-00003\.safetensors cannot be read \(ENOENT\); copy all files/,
    );
  });
  test("with a damaged file, by its name", async () => {
    const folder = copy();
    const path = join(folder, "model-00002-of-00003.safetensors");
    writeFileSync(path, "no tensors");
    expect(await refusal(loadPretrained(folder))).toContain(`${path}: safetensors: the header`);
  });
  test("with an index of another checkpoint", async () => {
    const folder = copy();
    let place = "";
    editIndex(folder, (map) => {
      place = map["model.norm.weight"]!;
      delete map["model.norm.weight"];
    });
    expect(await refusal(loadPretrained(folder))).toMatch(
      /holds the tensor "model\.norm\.weight", but .* assigns it to nothing/,
    );
    editIndex(folder, (map) => {
      map["model.norm.weight"] = place;
      map["model.other"] = place;
    });
    expect(await refusal(loadPretrained(folder))).toMatch(
      /assigns the tensor "model\.other" to .* does not contain it/,
    );
  });
  test("as a target if it holds a checkpoint, and arrays of another model", async () => {
    const loaded = await loadPretrained(checkpointFolder("qwen2"));
    expect(await refusal(savePretrained(copy(), loaded))).toMatch(
      /already has a checkpoint \(.*\); give another folder/,
    );
    const { embedding_VD: _, ...rest } = loaded.params as Record<string, unknown>;
    const message = await refusal(
      savePretrained(emptyFolder(), { ...loaded, params: { ...rest, other: NdArray.zeros("f32", []) } }),
    );
    expect(message).toMatch(/2 differ, such as params\.embedding_VD \[23, 12\] is missing, params\.other is not of/);
  });
});
