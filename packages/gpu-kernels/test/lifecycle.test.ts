import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Worker } from "node:worker_threads";
import { add, jit, matmul, multiply, NdArray, subtract, sum, type Tensor, valueAndGrad } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { describe, expect, test } from "vitest";
import { DeviceLostError } from "../src/index.ts";
import { hasAdapter, openBackend } from "./gpu.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const file = (name: string): string => fileURLToPath(new URL(`./processes/${name}`, import.meta.url));

describe.skipIf(!hasAdapter)("life of a backend", () => {
  test("a process exits after close, and an idle device costs no CPU time", async () => {
    const child = spawn(process.execPath, [file("compute-and-exit.ts")], { stdio: ["ignore", "pipe", "pipe"] });
    let [output, errors] = ["", ""];
    child.stdout.on("data", (text) => (output += String(text)));
    child.stderr.on("data", (text) => (errors += String(text)));
    const code = await new Promise((resolve) => child.once("exit", resolve));
    const ended = Date.now();
    expect(code, errors).toBe(0);
    const { values, idleCpuSeconds, closedAt } = JSON.parse(output) as {
      values: number[];
      idleCpuSeconds: number;
      closedAt: number;
    };
    expect(values).toEqual([2, 3, 4]);
    expect(idleCpuSeconds).toBeLessThan(0.2);
    expect(ended - closedAt).toBeLessThan(5000);
  });

  test("a worker thread has its own backend, in addition to the main thread's backend", async () => {
    const backend = await openBackend();
    const worker = new Worker(file("compute-worker.ts"));
    const answer = new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
    const ended = new Promise((resolve) => worker.once("exit", resolve));
    const f = jit((x: Tensor) => add(x, 1), backend);
    expect((await backend.download(await f(NdArray.from([1])))).toNumbers()).toEqual([2]);
    expect(await answer).toEqual([7, 10, 15, 22]);
    expect(await ended).toBe(0);
    expect((await backend.download(await f(NdArray.from([2])))).toNumbers()).toEqual([3]);
    backend.close();
  });

  test("memory stays flat over thousands of training steps", async () => {
    const backend = await openBackend();
    const loss = (w: Tensor, x: Tensor, y: Tensor): Tensor => {
      const error = subtract(matmul(x, w), y);
      return sum(multiply(error, error));
    };
    const step = jit(
      (w: Tensor, x: Tensor, y: Tensor) => {
        const [value, gradient] = valueAndGrad((own: Tensor) => loss(own, x, y))(w);
        return { w: subtract(w, multiply(gradient, 1e-3)), loss: value };
      },
      backend,
      { donate: [0] },
    );
    const [x, y] = [normalArray([16, 8], 1), normalArray([16, 4], 2)];
    let w = backend.upload(normalArray([8, 4], 3));
    const losses: number[] = [];
    const [held, resident]: [string[], number[]] = [[], []];
    for (let i = 0; i < 5000; i++) {
      // The batch is uploaded from the host in each step, as in training.
      const result = (await step(w, x, y)) as unknown as { w: typeof w; loss: typeof w };
      w = result.w;
      if (i % 100 === 0) losses.push((await backend.download(result.loss)).toNumbers()[0]!);
      backend.free(result.loss);
      if (i % 100 !== 99) continue;
      // Wrappers of commands hold native memory until they are garbage-collected.
      collectGarbage();
      await new Promise((resolve) => setTimeout(resolve, 10));
      if (i % 500 !== 499) continue;
      held.push(`${backend.bytesInUse()} in use, ${backend.bytesReserved()} reserved`);
      resident.push(process.memoryUsage.rss());
    }
    expect(losses.at(-1)!).toBeLessThan(losses[0]! / 2);
    expect(new Set(held).size).toBe(1);
    // Heaps grow in irregular jumps, whereas a leak grows in every 500 steps. In at least two intervals, memory must
    // grow by less than 4 KiB per step.
    const growth = resident
      .slice(1)
      .map((bytes, i) => bytes - resident[i]!)
      .sort((a, b) => a - b);
    expect(growth[1]!, growth.join(" ")).toBeLessThan(500 * 4096);
    backend.close();
  });

  test("every later call reports a lost device, and a new backend works", async () => {
    const backend = await openBackend();
    const f = jit((x: Tensor) => add(x, 1), backend);
    const x = backend.upload(NdArray.from([1, 2]));
    const y = await f(x);
    backend.device.gpu.destroy();
    await backend.device.gpu.lost;
    await expect(f(x)).rejects.toThrow(DeviceLostError);
    await expect(backend.download(y)).rejects.toThrow(/was lost.*last checkpoint/);
    expect(() => backend.upload(NdArray.from([1]))).toThrow(DeviceLostError);
    await expect(jit((a: Tensor) => multiply(a, 2), backend)(x)).rejects.toThrow(DeviceLostError);
    f.release();
    backend.free(y);
    const again = await openBackend();
    expect(
      (await again.download(await jit((a: Tensor) => add(a, 1), again)(NdArray.from([1, 2])))).toNumbers(),
    ).toEqual([2, 3]);
    again.close();
  });

  test("calls in progress reject when the device is lost", async () => {
    const backend = await openBackend();
    const f = jit((x: Tensor) => Array.from({ length: 8 }).reduce<Tensor>((y) => matmul(y, x), x), backend);
    const x = backend.upload(normalArray([512, 512]));
    backend.free(await f(x));
    // Some calls wait for earlier runs, and one call waits for its copy.
    const pending = [async () => backend.download(await f(x)), async () => backend.download(x)].map(async (call) =>
      call(),
    );
    const outcome = Promise.allSettled(pending);
    await new Promise((resolve) => setImmediate(resolve));
    backend.device.gpu.destroy();
    for (const result of await outcome) {
      expect(result.status).toBe("rejected");
      expect((result as PromiseRejectedResult).reason).toBeInstanceOf(DeviceLostError);
    }
  });

  test("a closed backend throws an error that says so", async () => {
    const backend = await openBackend();
    const f = jit((x: Tensor) => add(x, 1), backend);
    const x = backend.upload(NdArray.from([1]));
    backend.close();
    await backend.device.gpu.lost;
    await expect(f(x)).rejects.toThrow(/was closed; create a new backend/);
  });
});
