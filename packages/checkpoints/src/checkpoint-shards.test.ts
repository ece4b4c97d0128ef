import { NdArray, type DType } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  cutsOf,
  joinParts,
  ownPartOf,
  partOfWhole,
  shardFile,
  shardFilesIn,
  wholeSpec,
  wholeTensors,
} from "./checkpoint-shards.ts";

const wholes = fc
  .record({
    part: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }),
    at: fc.nat(3),
    numParts: fc.integer({ min: 1, max: 5 }),
    dtype: fc.constantFrom<DType>("f32", "u8", "bf16", "bool"),
  })
  .map(({ part, at, numParts, dtype }) => {
    const dim = at % part.length;
    const shape = part.map((size, i) => (i === dim ? size * numParts : size));
    const count = shape.reduce((product, size) => product * size, 1);
    const values = Array.from({ length: count }, (_, i) => (dtype === "bool" ? i % 2 : i % 251));
    return { part, dim, numParts, whole: NdArray.from(values, shape, dtype) };
  });

describe("parts of a tensor", () => {
  test("hold its entries, and concatenate to the tensor", () => {
    fc.assert(
      fc.property(wholes, ({ part, dim, numParts, whole }) => {
        const parts = Array.from({ length: numParts }, (_, place) => partOfWhole(whole, dim, place, numParts));
        const again = joinParts(parts, dim);
        expect(again.shape).toEqual(whole.shape);
        expect(again.bytes()).toEqual(whole.bytes());
        expect(wholeSpec({ dtype: whole.dtype, shape: part }, [{ dim, count: numParts }]).shape).toEqual(whole.shape);
        // Entry i of shard p along the dimension is entry p · n + i of the whole tensor, with n = shard size (`each`).
        const inner = whole.shape.slice(dim + 1).reduce((product, size) => product * size, 1);
        const [size, each] = [whole.shape[dim]!, part[dim]!];
        const numbers = whole.toNumbers();
        parts.forEach((own, place) => {
          expect(own.shape).toEqual(part);
          own.toNumbers().forEach((value, at) => {
            const [outer, rest] = [Math.floor(at / (each * inner)), at % (each * inner)];
            expect(value).toBe(numbers[outer * size * inner + place * each * inner + rest]);
          });
        });
      }),
    );
  });

  test("of one count are converted to any other count", () => {
    fc.assert(
      fc.property(wholes, fc.integer({ min: 1, max: 4 }), ({ dim, numParts, whole }, times) => {
        const finer = numParts * times;
        const shape = whole.shape.map((size, i) => (i === dim ? size * times : size));
        const tensor = NdArray.from(
          Array.from({ length: whole.data.length * times }, (_, i) => i),
          shape,
        );
        const saved = Array.from({ length: finer }, (_, place) => partOfWhole(tensor, dim, place, finer));
        const read = wholeTensors(new Map(), [
          { cuts: [{ dim, count: finer }], files: saved.map((part) => new Map([["w", part]])) },
        ])("w")!;
        for (let place = 0; place < numParts; place++)
          expect(partOfWhole(read, dim, place, numParts).toNumbers()).toEqual(
            joinParts(saved.slice(place * times, (place + 1) * times), dim).toNumbers(),
          );
      }),
    );
  });
});

describe("parts along two dimensions", () => {
  const expertShards = [
    { axis: "expert", dim: 0 },
    { axis: "tensor", dim: 2 },
  ];
  const rows = fc.record({
    mesh: fc.record({ expert: fc.integer({ min: 1, max: 3 }), tensor: fc.integer({ min: 1, max: 3 }) }),
    part: fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 3 })),
  });

  test("are in one file per coordinate, and are merged from all of them, listed in any order", () => {
    fc.assert(
      fc.property(rows, ({ mesh, part: [rowsEach, width, hiddenEach] }) => {
        const shape = [rowsEach * mesh.expert, width, hiddenEach * mesh.tensor];
        const whole = NdArray.from(
          Array.from({ length: shape[0]! * shape[1]! * shape[2]! }, (_, i) => i),
          shape,
        );
        const places = Array.from({ length: mesh.expert * mesh.tensor }, (_, i) => ({
          expert: Math.floor(i / mesh.tensor),
          tensor: i % mesh.tensor,
        }));
        const files = new Map(
          places
            .map((place): [string, NdArray] => [
              shardFile(expertShards, place),
              ownPartOf(whole, expertShards, { place, mesh }),
            ])
            .toReversed(),
        );
        const [found, ...others] = shardFilesIn(files);
        expect(others).toEqual([]);
        expect(found!.cuts).toEqual(cutsOf(expertShards, mesh));
        expect(wholeSpec({ dtype: "f32", shape: [rowsEach, width, hiddenEach] }, found!.cuts).shape).toEqual(shape);
        const read = wholeTensors(new Map(), [
          { cuts: found!.cuts, files: found!.names.map((name) => new Map([["w", files.get(name)!]])) },
        ]);
        expect(read("w")!.toNumbers()).toEqual(whole.toNumbers());
        // The shard at a coordinate contains the hidden features of that coordinate for each of its experts.
        const { expert, tensor } = places.at(-1)!;
        const first = (expert * rowsEach * width * mesh.tensor + tensor) * hiddenEach;
        expect(files.get(shardFile(expertShards, places.at(-1)!))!.toNumbers()[0]).toBe(first);
      }),
    );
  });

  test("with a missing file give no whole tensor", () => {
    const names = [0, 1].flatMap((expert) => [0, 1].map((tensor) => shardFile(expertShards, { expert, tensor })));
    expect(names[1]).toBe("experts-0-tensor-dim2-1.safetensors");
    const [found] = shardFilesIn(new Map(names.slice(0, 3).map((name) => [name, true])));
    expect(found!.names).toEqual(names); // lists the missing file, too
  });
});

describe("files of parts", () => {
  const filesOf = (...names: readonly string[]): Map<string, true> => new Map(names.map((name) => [name, true]));

  test("have names with the dimension of the parts; files of experts keep their original name", () => {
    expect(shardFile([{ axis: "expert", dim: 0 }], { expert: 3 })).toBe("experts-3.safetensors");
    expect(shardFile([{ axis: "tensor", dim: 1 }], { tensor: 0 })).toBe("tensor-dim1-0.safetensors");
    const names = [
      { axis: "expert", dim: 0 },
      { axis: "tensor", dim: 0 },
      { axis: "tensor", dim: 1 },
    ].flatMap((shard) => [0, 1].map((place) => shardFile([shard], { [shard.axis]: place })));
    expect(
      shardFilesIn(filesOf("shared.safetensors", "rank-0.safetensors", ...names.toReversed())).toSorted((a, b) =>
        a.names[0]! < b.names[0]! ? -1 : 1,
      ),
    ).toEqual([
      { cuts: [{ dim: 0, count: 2 }], names: names.slice(0, 2) },
      { cuts: [{ dim: 0, count: 2 }], names: names.slice(2, 4) },
      { cuts: [{ dim: 1, count: 2 }], names: names.slice(4) },
    ]);
  });

  test("end before the first missing number", () => {
    expect(shardFilesIn(filesOf("experts-0.safetensors", "experts-2.safetensors"))).toEqual([
      { cuts: [{ dim: 0, count: 1 }], names: ["experts-0.safetensors"] },
    ]);
  });

  test("give nothing for a tensor that one file lacks", () => {
    const part = NdArray.from([1, 2]);
    const shared = new Map([["b", part]]);
    const read = wholeTensors(shared, [{ cuts: [{ dim: 0, count: 2 }], files: [new Map([["w", part]]), new Map()] }]);
    expect(read("w")).toBeUndefined();
    expect(read("b")).toBe(part);
    expect(read("c")).toBeUndefined();
  });
});
